use crate::rig::{LEASE_MICROS, tolerated};

/// When something was wrong, in microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub from: i64,
    /// Until then calls may have been made whose results are not on record.
    pub sent_until: i64,
    /// Until then the timers had no owner that could fire them.
    pub over: i64,
    /// When a paused node went on.
    resumed: Option<i64>,
}

/// How long after a pause the calls may arrive that a node was about to make when it began: it had looked whether it may.
const RELEASED_WITHIN_MICROS: i64 = 100_000;

impl Fault {
    /// `kill -9` of one of several.
    pub fn kill(at: i64) -> Self {
        Self { from: at, sent_until: at, over: at + LEASE_MICROS, resumed: None }
    }

    /// A node stood still from then to then.
    pub fn pause(from: i64, to: i64) -> Self {
        Self { resumed: Some(to), ..Self::kill(from) }
    }

    /// A node did not hear of the database, nor the database of it. What it has claimed it delivers until its lease runs out.
    pub fn silence(from: i64) -> Self {
        Self { sent_until: from + LEASE_MICROS, ..Self::kill(from) }
    }

    /// The database was away for every node from then to then: every node keeps its shards.
    pub fn outage(from: i64, to: i64) -> Self {
        Self { from, sent_until: i64::MIN, over: to, resumed: None }
    }

    /// A part of the database died, and with it what a node had heard of it: the node delivers what it has claimed until its lease runs out.
    /// Its shards have no owner until another node has taken over, which the rest of the database may keep waiting.
    pub fn partial_outage(from: i64, taken_over: i64) -> Self {
        Self { over: taken_over, ..Self::silence(from) }
    }

    /// Whether a call that arrives now may have been held back by this.
    pub fn held_until(&self, arrived: i64) -> bool {
        self.resumed.is_some_and(|resumed| (resumed..=resumed + tolerated(RELEASED_WITHIN_MICROS)).contains(&arrived))
    }
}

/// How much of this time was part of a fault.
pub fn within(faults: &[Fault], from: i64, to: i64) -> i64 {
    let mut parts: Vec<(i64, i64)> =
        faults.iter().map(|fault| (fault.from.max(from), fault.over.min(to))).filter(|(from, to)| from < to).collect();
    parts.sort_unstable();
    let (mut sum, mut counted_to) = (0, from);
    for (from, to) in parts {
        sum += (to - from.max(counted_to)).max(0);
        counted_to = counted_to.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_within_faults_is_counted_once() {
        let fault = |from, over| Fault { from, sent_until: from, over, resumed: None };
        for (faults, expected) in [
            (vec![], 0),
            (vec![fault(0, 5)], 0),
            (vec![fault(5, 15)], 5),
            (vec![fault(12, 14), fault(13, 16), fault(12, 13)], 4),
            (vec![fault(0, 100), fault(15, 16)], 10),
        ] {
            assert_eq!(within(&faults, 10, 20), expected, "{faults:?}");
        }
    }
}
