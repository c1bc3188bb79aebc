use std::sync::atomic::{AtomicBool, Ordering};

use domain::{Rights, Span};
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::*;
use crate::{
    ConsoleConfig, HealthProbe, HealthReading,
    rig::{Rig, config, request},
};

/// The stream of a view, as its viewer reads it.
async fn open(rig: &Rig, cookie: &str, view: &str) -> (StatusCode, Body) {
    let view = Fields::from([("view", view)]).to_query();
    let mut asked = request("GET", &format!("/console/live{view}")).header("cookie", cookie).body(Body::empty()).unwrap();
    asked.extensions_mut().insert(axum::extract::ConnectInfo(std::net::IpAddr::from([127, 0, 0, 1])));
    let (head, body) = rig.router.clone().oneshot(asked).await.unwrap().into_parts();
    (head.status, body)
}

/// Reads until this is in the stream.
async fn read_until(body: &mut Body, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let frame = body.frame().await.unwrap_or_else(|| panic!("the stream ended after {read}")).unwrap();
        read.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
    read
}

#[tokio::test(start_paused = true)]
async fn a_region_is_sent_when_it_has_changed_and_not_before() {
    let rig = Rig::new();
    let id = rig.timer("k", "a").await;
    let (status, mut body) = open(&rig, &rig.cookie, &format!("/timers/{id}")).await;
    assert_eq!(status, 200);
    let first = read_until(&mut body, "timer-attempts").await;
    assert!(first.contains("event: region") && first.contains("timer-head"), "{first}");
    rig.commands.cancel(id, None).await.unwrap();
    let changed = read_until(&mut body, "canceled").await;
    assert!(changed.contains("timer-head") && !changed.contains("timer-content"), "{changed}");
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_ends_its_stream() {
    let rig = Rig::new();
    let (id, cookie) = rig.holder(&["a"], Rights::Read).await;
    let (_, mut body) = open(&rig, &cookie, "/timers").await;
    read_until(&mut body, "timer-list").await;
    rig.commands.revoke_key(id).await.unwrap();
    rig.clock.advance(Span::from_secs(2));
    assert!(read_until(&mut body, "event: gone").await.contains("gone"));
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_sends_all_the_time_ends_with_its_key() {
    let rig = Rig::new();
    let (id, cookie) = rig.holder(&["a"], Rights::Read).await;
    let (_, mut body) = open(&rig, &cookie, "/timers").await;
    read_until(&mut body, "timer-list").await;
    rig.commands.revoke_key(id).await.unwrap();
    rig.clock.advance(Span::from_secs(2));
    let mut read = String::new();
    for n in 0..5 {
        rig.timer(&format!("late-{n}"), "a").await;
        let Some(frame) = body.frame().await else { break };
        read.push_str(std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap());
    }
    assert!(read.ends_with(GONE) && !read.contains("late-3"), "{read}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_cookie_for_the_administrator_too() {
    let rig = Rig::new();
    let (_, holder) = rig.holder(&["a"], Rights::Read).await;
    let mut streams = Vec::new();
    for cookie in [&rig.cookie, &holder] {
        let (_, mut body) = open(&rig, cookie, "/timers").await;
        read_until(&mut body, "timer-list").await;
        streams.push(body);
    }
    rig.machine.advance(Span::from_secs(12 * 60 * 60));
    for mut body in streams {
        read_until(&mut body, "event: gone").await;
        assert!(body.frame().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_viewer_is_told_that_the_store_is_away_and_back() {
    let rig = Rig::new();
    let (_, mut body) = open(&rig, &rig.cookie, "/timers").await;
    read_until(&mut body, "timer-list").await;
    rig.faulty.set_down(true);
    let away = read_until(&mut body, "event: away").await;
    assert!(!away.contains("timer-list") && away.contains("health bad"), "{away}");
    rig.faulty.set_down(false);
    // The answer of the database is asked for again once it is a second old.
    rig.clock.advance(Span::from_secs(2));
    let back = read_until(&mut body, "health good").await;
    assert!(back.contains("event: back"), "{back}");
}

#[tokio::test(start_paused = true)]
async fn an_open_page_is_told_that_its_node_is_not_well() {
    let is_well = Arc::new(AtomicBool::new(true));
    let probed = Arc::clone(&is_well);
    let read = Arc::new(move || HealthReading { value: "12.5".to_owned(), is_well: probed.load(Ordering::Relaxed) });
    let rig = Rig::configured(ConsoleConfig { health: vec![HealthProbe { name: "lag_seconds", read }], ..config() });
    let (_, mut body) = open(&rig, &rig.cookie, "/timers").await;
    read_until(&mut body, "health good").await;
    is_well.store(false, Ordering::Relaxed);
    let told = read_until(&mut body, "health warn").await;
    assert!(told.contains("Lag seconds is not well") && !told.contains("timer-list"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_key_has_only_so_many_streams_and_gets_them_back() {
    let rig = Rig::new();
    let mut streams = Vec::new();
    for _ in 0..STREAMS_OF_A_KEY_MAX {
        streams.push(open(&rig, &rig.cookie, "/timers").await);
    }
    assert_eq!(open(&rig, &rig.cookie, "/timers").await.0, 503);
    streams.pop();
    assert_eq!(open(&rig, &rig.cookie, "/timers").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn the_page_of_an_empty_installation_learns_of_the_first_timer() {
    let rig = Rig::new();
    let (_, mut body) = open(&rig, &rig.cookie, "").await;
    let first = read_until(&mut body, "tiles").await;
    assert!(!first.contains("first-steps"), "{first}");
    rig.timer("k", "a").await;
    let told = read_until(&mut body, "first-steps").await;
    assert!(told.contains("data-live></section>"), "{told}");
}
