use domain::{Key, Status};
use store::Operation;
use store_testing::Fault;

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

#[tokio::test(start_paused = true)]
async fn the_store_has_a_pause_between_two_pages() {
    for (members, pauses) in [(PAGE_TIMERS - 1, 0), (PAGE_TIMERS + 1, 1), (2 * PAGE_TIMERS + 1, 2)] {
        let rig = Rig::new();
        for key in 0..members {
            create(&rig, key).await;
        }
        let began = Instant::now();
        let canceled = rig.commands.cancel_group(&Namespace::default(), &group()).await.unwrap();
        assert_eq!(canceled.canceled, members);
        let (took, shortest) = (began.elapsed(), pause(Spent::default(), false));
        assert!(took >= shortest * pauses && took.is_zero() == (pauses == 0), "{members} members: {took:?}");
    }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again() {
    for (fault, canceled) in [(Fault::NotDoneUnknown, 3), (Fault::DoneUnknown, 0)] {
        let rig = Rig::new();
        for key in 0..3 {
            create(&rig, key).await;
        }
        rig.store.plan(Operation::CancelAll, fault);
        let answer = rig.commands.cancel_group(&Namespace::default(), &group()).await.unwrap();
        assert_eq!(answer, CanceledMany { matched: 3, canceled }, "{fault:?}");
        let left = rig.commands.count_group(&Namespace::default(), &group()).await.unwrap();
        assert_eq!(left.by_status.into_iter().collect::<Vec<_>>(), [(Status::Canceled, 3)], "{fault:?}");
    }
}

#[tokio::test]
async fn after_a_part_was_canceled_the_caller_is_not_told_that_nothing_was() {
    for (operation, fault) in [(Operation::CancelAll, Fault::NotDone), (Operation::GroupMembers, Fault::NotDone)] {
        let rig = Rig::new();
        for key in 0..=PAGE_TIMERS {
            create(&rig, key).await;
        }
        rig.store.plan_none(operation);
        rig.store.plan(operation, fault);
        let error = rig.commands.cancel_group(&Namespace::default(), &group()).await.unwrap_err();
        assert!(matches!(error, CommandError::Unknown(_)), "{operation:?} {error}");
    }
}
