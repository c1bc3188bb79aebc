//! Noting which stretches of the indexes of a partition are empty, now and then.

use store_partitioned::Partition;

use crate::write::{Answer, Writer};

/// Notes the stretches that ranges of this process found to be empty, if it is time. What fails is tried again later.
pub async fn tidy(writer: &Writer, partition: &Partition) {
    if !writer.notes.is_due(partition) {
        return;
    }
    for (kind, from, to) in writer.reader.observed.take(partition) {
        let Ok(known) = writer.known_gaps(partition).await else { return };
        let mut announced = known.clone();
        let Some(stretch) = announced.announce(kind, &from, &to) else { continue };
        if !matches!(writer.note(partition, &known, announced, true, Vec::new()).await, Ok(Answer::Applied)) {
            continue;
        }
        let (Some(announced), Ok(true)) = (writer.notes.known(partition), writer.reader.is_empty(partition, &stretch).await)
        else {
            continue;
        };
        let mut sure = announced.clone();
        sure.make_sure(&stretch);
        // Refused where an entry was made in it meanwhile.
        drop(writer.note(partition, &announced, sure, true, Vec::new()).await);
    }
}
