//! The recorded attempts of a timer.

use domain::{Attempt, Next, OnConflict, ReceivedAnswer, limits};
use store::Settlement;

use crate::{Fixture, NOW, Stage, ago, ahead, millis, secs, stage::entry_at, timer};

fn attempt(number: u32, detail: Option<&str>) -> Attempt {
    Attempt {
        number,
        started_at: ahead(secs(number)),
        took: millis(12),
        outcome: "status_5xx".to_owned(),
        status: Some(503),
        detail: detail.map(str::to_owned),
        node: Some("host-1.example:8080".to_owned()),
        answer: None,
    }
}

pub async fn an_attempt_is_remembered_with_its_settlement(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(timer("http://a.example/")).await;
    assert_eq!(stage.store.attempts(timer.id()).await.unwrap(), []);
    let claimed = stage.claim_one(&timer).await;
    let first = attempt(1, Some("busy, \"é\" \\ 😀"));
    let retry = Next::Pending { at: NOW, attempt: 1, error: Some("503".to_owned()) };
    let settlement = Settlement { attempt: Some(first.clone()), ..claimed.settle(retry) };
    assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [true]);
    assert_eq!(stage.store.attempts(timer.id()).await.unwrap(), std::slice::from_ref(&first));

    let claimed = stage.claim_one(&timer).await;
    let answer = ReceivedAnswer::new(vec![("server".to_owned(), "é".to_owned())], "no\u{0} \"stock\"".as_bytes());
    let second = Attempt { status: None, outcome: "timeout".to_owned(), answer: Some(answer.clone()), ..attempt(2, None) };
    let again = Next::Pending { at: NOW, attempt: 2, error: Some("timeout".to_owned()) };
    let settlement = Settlement { attempt: Some(second.clone()), ..claimed.settle(again) };
    assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [true]);

    // Of a node that does not say its name.
    let claimed = stage.claim_one(&timer).await;
    let third = Attempt { node: None, answer: Some(answer), ..attempt(3, None) };
    let settlement = Settlement { attempt: Some(third.clone()), ..claimed.settle(Next::Completed { at: NOW }) };
    assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [true]);
    assert_eq!(stage.store.attempts(timer.id()).await.unwrap(), [first, second, third]);
}

pub async fn a_settlement_that_does_not_count_is_not_remembered(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(timer("http://a.example/")).await;
    let claimed = stage.claim_one(&timer).await;
    let settlement = Settlement { attempt: Some(attempt(1, None)), ..claimed.settle(Next::Completed { at: NOW }) };
    let forged = Settlement { token: stage.next_token(), ..settlement.clone() };
    assert_eq!(stage.store.settle(&[forged]).await.unwrap(), [false]);
    assert_eq!(stage.store.attempts(timer.id()).await.unwrap(), []);
    // Repeating a call with an unknown outcome records nothing twice.
    assert_eq!(stage.store.settle(std::slice::from_ref(&settlement)).await.unwrap(), [true]);
    assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [false]);
    assert_eq!(stage.store.attempts(timer.id()).await.unwrap().len(), 1);
}

pub async fn only_the_last_attempts_are_kept(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(timer("http://a.example/")).await;
    let beside = stage.create(crate::timer("http://b.example/")).await;
    for (timer, count) in [(&timer, 25), (&beside, 2)] {
        for number in 1..=count {
            let claimed = stage.claim(&[entry_at(timer, NOW)]).await.remove(0);
            let retry = Next::Pending { at: NOW, attempt: number, error: None };
            let settlement = Settlement { attempt: Some(attempt(number, None)), ..claimed.settle(retry) };
            assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [true]);
        }
    }
    let numbers = |attempts: Vec<Attempt>| attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>();
    let kept = numbers(stage.store.attempts(timer.id()).await.unwrap());
    assert_eq!(kept, (6..=25).collect::<Vec<_>>());
    assert_eq!(kept.len(), limits::ATTEMPTS_KEPT);
    assert_eq!(numbers(stage.store.attempts(beside.id()).await.unwrap()), [1, 2]);
}

pub async fn attempts_outlive_a_life_and_go_with_the_timer(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = timer("http://a.example/").key("k");
    let claimed = stage.claim_one(&stage.create(draft.clone()).await).await;
    let ended = Next::Failed { at: ago(secs(100)), error: "503".to_owned() };
    let settlement = Settlement { attempt: Some(attempt(1, None)), ..claimed.settle(ended.clone()) };
    assert_eq!(stage.store.settle(&[settlement]).await.unwrap(), [true]);
    let revived = stage.create_all(vec![draft.on_conflict(OnConflict::Replace)]).await.remove(0).timer().clone();
    assert_eq!(stage.store.attempts(revived.id()).await.unwrap().len(), 1);
    let claimed = stage.claim_one(&revived).await;
    stage.settle(&claimed, ended).await;
    assert_eq!(stage.store.purge(NOW, 10).await.unwrap(), 1);
    assert_eq!(stage.store.attempts(revived.id()).await.unwrap(), []);
}
