//! The Rust SDK against the real binary.

use std::time::Duration;

use client::{
    Bulk, Bulked, Error, EventQuery, Filter, Json, NewTimer, PageQuery, RetryPolicy, Status, TimerRef, Update,
    dev::{Calls, InboxAnswer, TimerDev},
};
use futures_util::TryStreamExt;

use crate::rig::{beside_others, tolerated};

async fn dev() -> TimerDev {
    TimerDev::start_program(env!("CARGO_BIN_EXE_timer")).await.expect("a service")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reminder_with_retries_is_tested_with_eight_lines() {
    let _machine = beside_others().await;
    let dev = dev().await;
    let away = InboxAnswer { path: Some("/reminder".into()), status: Some(503), times: Some(1), ..InboxAnswer::default() };
    dev.answer(&[away]).await.expect("answers");
    let payload = r#"{"n": 1.10, "big": 12345678901234567890}"#;
    let retry = RetryPolicy { max_retries: Some(2), ..RetryPolicy::default() };
    let new = NewTimer::http(dev.receiver("/reminder")).delay("30d").payload(Json::text(payload).expect("JSON")).retry(retry);
    let timer = dev.client.timers().create(&new.traceparent("00-0af7-b7ad-01")).await.expect("a timer");
    let advanced = dev.advance("31d").await.expect("a moved clock");
    assert_eq!((advanced.fired, advanced.completed, advanced.complete), (2, 1, true));

    let received = dev.calls(&Calls::of(&timer.id)).await.expect("calls");
    assert_eq!((received.len(), received[1].attempt, received[1].body.as_str()), (2, Some(2), payload));
    let call = dev.verify(&received[1]).expect("a signed call");
    assert_eq!((call.timer_id, call.attempt), (timer.id.clone(), 2));
    assert_eq!(call.traceparent.as_deref(), Some("00-0af7-b7ad-01"));

    let detail = dev.client.timers().get(&timer.id).await.expect("the timer");
    assert_eq!((detail.timer.status, detail.payload().as_ref().map(Json::as_str)), (Status::Completed, Some(payload)));
    assert_eq!(dev.client.timers().attempts(&timer.id).await.expect("attempts")[0].status, Some(503));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_are_changed_listed_and_followed() {
    let _machine = beside_others().await;
    let dev = dev().await;
    let timers = dev.client.timers();
    let mut events = dev.client.events(EventQuery { types: Some("finished".into()), ..EventQuery::default() });
    let mut next = async || tokio::time::timeout(tolerated(Duration::from_secs(20)), events.next_raw()).await;
    let opened = next().await.expect("an answer in time").expect("a stream");
    assert_eq!(opened.0.kind, "position");
    let many: Vec<_> = (0..250).map(|n| NewTimer::http(dev.receiver("/x")).delay("1h").key(format!("k{n}")).group("g")).collect();
    let results = timers.create_many(&many).await.expect("a batch");
    assert!(results.iter().all(|result| result.status == 201) && results.len() == 250);
    let listed: Vec<_> = timers.list(Filter::new().group("g").into()).try_collect().await.expect("a list");
    assert_eq!(listed.len(), 250, "more than a page");
    let page = timers.page(&PageQuery { limit: Some(2), ..Filter::new().key_prefix("k1").into() }).await.expect("a page");
    assert_eq!((page.timers.len(), page.total, page.next_cursor.is_some()), (2, 111, true));

    let first = TimerRef::key("default", "k0");
    let update = Update::new().after(Duration::from_secs(7200));
    assert_eq!(timers.if_revision(1).update(&first, &update).await.expect("an update").revision, 2);
    assert!(matches!(timers.if_revision(1).update(&first, &update).await, Err(Error::Conflict(_))));
    assert_eq!(timers.pause(&first, Some("later")).await.expect("a pause").status, Status::Paused);
    assert_eq!(timers.resume(&first, None).await.expect("a resume").status, Status::Pending);
    assert_eq!(timers.cancel(&first).await.expect("a cancel").status, Status::Canceled);
    let (event, _) = next().await.expect("an event in time").expect("an event");
    assert_eq!(event.kind, "finished");

    let bulk = Bulk { action: "cancel".into(), filter: Filter::new().group("g"), set: None };
    assert_eq!(timers.bulk_preview(&bulk).await.expect("a preview").matched, 250);
    assert!(matches!(timers.bulk(&bulk, 10).await, Err(Error::Conflict(_))));
    assert_eq!(timers.bulk(&bulk, 250).await.expect("a bulk change"), Bulked::Done { changed: 249, skipped: 1 });
    assert!(matches!(timers.get("01890a5d-ac96-774b-bcce-b302099a8057").await, Err(Error::NotFound(_))));
    let refused = timers.create(&NewTimer::http("nowhere").delay("1h")).await.expect_err("a refusal");
    assert_eq!(refused.refusal().and_then(client::Refusal::field), Some("callback.url"), "{refused}");
}
