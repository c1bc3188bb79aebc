use std::collections::BTreeMap;

use domain::{Access, AccessKey, Caller, JsonText, Key, Span, Status};
use store::{Operation, TimerStore};
use store_testing::Fault;

use super::*;
use crate::{
    NewTimerRequest,
    rig::{NOW, Rig, plain},
};

fn json(text: &str) -> JsonText {
    JsonText::parse("metadata", text, 1000).unwrap()
}

fn wanting(metadata: &str, expected_max: usize) -> Selection {
    let members = serde_json::from_str::<BTreeMap<String, u32>>(metadata).unwrap();
    let members = members.into_iter().map(|(name, value)| (name, value.to_string())).collect();
    Selection { filter: Filter { status: vec![Status::Pending], members, ..Filter::default() }, expected_max }
}

async fn with_orders(count: usize) -> Rig {
    let rig = Rig::new();
    let order = |n| NewTimerRequest {
        key: Some(Key::parse(&format!("order-{n}")).unwrap()),
        metadata: Some(json(&format!(r#"{{"parity":{}}}"#, n % 2))),
        ..plain()
    };
    for answer in rig.commands.create_all((0..count).map(order).collect()).await {
        answer.unwrap();
    }
    rig
}

#[tokio::test]
async fn what_matches_is_canceled_over_many_pages() {
    let rig = with_orders(2_500).await;
    let answer = rig.commands.cancel_matching(&wanting(r#"{"parity":1}"#, 1_250)).await.unwrap();
    assert_eq!(answer, CanceledMany { matched: 1_250, canceled: 1_250 });
    let left = Filter { status: vec![Status::Pending], ..Filter::default() };
    assert_eq!(rig.store.count(&left, store::SEARCH_BUDGET).await.unwrap(), 1_250);
}

#[tokio::test]
async fn more_than_expected_is_refused_and_nothing_is_canceled() {
    let rig = with_orders(10).await;
    let refusal = rig.commands.cancel_matching(&wanting("{}", 9)).await.unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "more than 9 timers match, and none was changed: raise expected_max if all of them are meant"
    );
    assert_eq!(rig.store.calls(Operation::CancelAll), 0);
    assert_eq!(rig.commands.cancel_matching(&wanting("{}", 10)).await.unwrap().canceled, 10);
    for expected_max in [0, limits::CANCELED_AT_ONCE_MAX + 1] {
        let refusal = rig.commands.cancel_matching(&wanting("{}", expected_max)).await.unwrap_err();
        assert!(refusal.to_string().starts_with("expected_max must lie between"), "{refusal}");
    }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again() {
    let rig = with_orders(3).await;
    rig.store.plan(Operation::CancelAll, Fault::NotDoneUnknown);
    assert_eq!(rig.commands.cancel_matching(&wanting("{}", 3)).await.unwrap().canceled, 3);
}

#[tokio::test]
async fn after_a_part_was_canceled_the_caller_is_not_told_that_nothing_was() {
    let rig = with_orders(1_500).await;
    rig.store.plan_none(Operation::CancelAll);
    rig.store.plan(Operation::CancelAll, Fault::NotDone);
    let error = rig.commands.cancel_matching(&wanting("{}", 2_000)).await.unwrap_err();
    assert!(matches!(error, CommandError::Unknown(_)), "{error}");
    assert_eq!(rig.commands.cancel_matching(&wanting("{}", 2_000)).await.unwrap().canceled, 500);
}

#[tokio::test(start_paused = true)]
async fn one_key_searches_once_at_a_time() {
    let rig = with_orders(1).await;
    let holder = |n: u8| {
        let (key, _) = AccessKey::issue("k", Access::FULL, [n; 32], NOW).unwrap();
        rig.commands.on_behalf_of(Caller::Holder(key.into()))
    };
    let nothing = wanting(r#"{"parity":7}"#, 1);
    for commands in [rig.commands.clone(), holder(1), holder(2)] {
        rig.store.plan(Operation::List, Fault::Late(Span::from_secs(1)));
        let (first, second) = tokio::join!(commands.cancel_matching(&nothing), commands.cancel_matching(&nothing));
        assert_eq!(first.unwrap().matched, 0);
        assert!(matches!(second, Err(CommandError::Searching)));
        assert_eq!(commands.cancel_matching(&nothing).await.unwrap().matched, 0);
    }
    rig.store.plan(Operation::List, Fault::Late(Span::from_secs(1)));
    let (mine, yours) = (holder(1), holder(2));
    let (mine, yours) = tokio::join!(mine.cancel_matching(&nothing), yours.cancel_matching(&nothing));
    assert_eq!((mine.unwrap().matched, yours.unwrap().matched), (0, 0));
}
