use domain::{Key, Status};

use super::*;
use crate::{
    NewTimerRequest,
    rig::{Rig, plain},
};

fn group() -> Group {
    Group::parse("g").unwrap()
}

async fn create(rig: &Rig, key: usize) {
    let request = NewTimerRequest { key: Some(Key::parse(&key.to_string()).unwrap()), group: Some(group()), ..plain() };
    rig.commands.create(request).await.unwrap();
}

#[tokio::test]
async fn a_group_is_counted_and_canceled_a_thousand_at_a_time() {
    let rig = Rig::new();
    create(&rig, 0).await;
    rig.complete_all().await;
    for key in 1..=PAGE_TIMERS + 1 {
        create(&rig, key).await;
    }
    let default = Namespace::default();
    let counted = rig.commands.count_group(&default, &group()).await.unwrap();
    assert_eq!(counted.by_status.into_iter().collect::<Vec<_>>(), [(Status::Pending, 1001), (Status::Completed, 1)]);
    let canceled = rig.commands.cancel_group(&default, &group()).await.unwrap();
    assert_eq!(canceled, CanceledMany { matched: 1001, canceled: 1001 });
    let again = rig.commands.cancel_group(&default, &group()).await.unwrap();
    assert_eq!(again, CanceledMany { matched: 0, canceled: 0 });
    let unknown = rig.commands.count_group(&default, &Group::parse("other").unwrap()).await.unwrap();
    assert_eq!(unknown, GroupCount::default());
}
