use commands::Page;
use store::Count;

use super::*;
use crate::rig::{NOW, Rig};

async fn rig_with(count: u32) -> Rig {
    let rig = Rig::new();
    for n in 0..count {
        rig.created(&format!(
            r#"{{"delay":"{}s","callback":{{"type":"http","url":"http://a"}},"key":"k{n}","namespace":"n{}"}}"#,
            1000 - 3 * n,
            n % 2
        ))
        .await;
        rig.clock.advance(domain::Span::from_secs(1));
    }
    rig
}

async fn keys(rig: &Rig, query: &str) -> Vec<String> {
    let reply = rig.get(&format!("/timers{query}")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let timers = reply.data("timers");
    timers.as_array().unwrap().iter().map(|timer| timer["key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_are_filtered_sorted_and_counted() {
    let rig = rig_with(5).await;
    for (query, expected) in [
        ("", &["k4", "k3", "k2", "k1", "k0"][..]),
        ("?", &["k4", "k3", "k2", "k1", "k0"]),
        ("?order=asc", &["k0", "k1", "k2", "k3", "k4"]),
        ("?sort=execute_at&order=desc&limit=2", &["k0", "k1"]),
        ("?namespace=n1", &["k3", "k1"]),
        ("?status=pending&limit=1&offset=1", &["k3"]),
        ("?status=completed", &[]),
        ("?offset=9800", &[]),
        ("?namespace=n1,n0&key_prefix=k&limit=2", &["k4", "k3"]),
        ("?status=pending,completed&key=k2", &["k2"]),
        ("?limit=200", &["k4", "k3", "k2", "k1", "k0"]),
    ] {
        assert_eq!(keys(&rig, query).await, expected, "{query}");
    }
    let reply = rig.get("/timers?namespace=n0&limit=1&offset=1").await;
    assert_eq!((reply.data("total"), reply.data("limit"), reply.data("offset")), (3.into(), 1.into(), 1.into()));
    assert_eq!(reply.data("total_is_estimate"), false);
}

#[test]
fn a_total_that_is_an_estimate_says_so() {
    for (total, expected) in [
        (Count::exactly(0), (0, false)),
        (Count::exactly(2_000_000), (2_000_000, false)),
        (Count::about(2_000_000), (2_000_000, true)),
        (Count::about(7), (7, true)),
    ] {
        let listed = Listed { page: Page::default(), total };
        let query = query(&Uri::from_static("/timers"), &Caller::Administrator).unwrap();
        let page = serde_json::to_value(page(listed, &query, &Caller::Administrator, NOW)).unwrap();
        assert_eq!((&page["total"], &page["total_is_estimate"]), (&expected.0.into(), &expected.1.into()));
    }
}

#[tokio::test]
async fn a_cursor_leads_through_all_pages() {
    let rig = rig_with(5).await;
    for order in ["asc", "desc"] {
        let mut seen = Vec::new();
        let mut query = format!("?order={order}&sort=execute_at&limit=2");
        loop {
            seen.extend(keys(&rig, &query).await);
            let next = rig.get(&format!("/timers{query}")).await.data("next_cursor");
            let Some(next) = next.as_str() else { break };
            query = format!("?order={order}&sort=execute_at&limit=2&cursor={next}");
        }
        let whole = keys(&rig, &format!("?order={order}&sort=execute_at")).await;
        assert_eq!(seen, whole);
    }
}

#[tokio::test]
async fn every_bad_parameter_is_refused_by_name() {
    let rig = rig_with(2).await;
    let cursor = rig.get("/timers?limit=1").await.data("next_cursor").as_str().unwrap().to_owned();
    let other_order = format!("order=asc&cursor={cursor}");
    for (query, start) in [
        ("limit=0", "limit must be a whole number from 1 to 200"),
        ("limit=201", "limit must be a whole number from 1 to 200"),
        ("limit=-1", "limit must be"),
        ("limit=%2B5", "limit must be"),
        ("limit=ten", "limit must be"),
        ("limit=", "limit must be"),
        ("limit=1.0", "limit must be"),
        ("limit=99999999999999999999", "limit must be"),
        ("limit=1&limit=2", "limit must not be given twice"),
        ("offset=-1", "offset must be a whole number from 0 to 9999"),
        ("offset=99999999999999999999", "offset must be a whole number from 0 to 9999"),
        ("offset=x", "offset must be"),
        ("offset=9951", "offset and limit must not lead further than 10000 timers: read on with cursor"),
        ("offset=9223372036854775807", "offset and limit must not lead further"),
        ("status=done", "status must be pending, executing, completed, failed, canceled, paused or expired"),
        ("status=Pending", "status must be"),
        ("status=", "status must be"),
        ("sort=updated_at", "sort must be created_at or execute_at"),
        ("sort=created_at;drop", "sort must be"),
        ("order=up", "order must be asc or desc"),
        ("order=ASC", "order must be"),
        ("namespace=", "namespace must have 1 to 255 characters"),
        ("namespace=a%00b", "namespace must not contain control characters"),
        ("namespace=%ff", "namespace must be valid UTF-8"),
        ("cursor=", "cursor must be a next_cursor of an earlier answer"),
        ("cursor=AAAA", "cursor must be a next_cursor"),
        ("cursor=%27%20OR%201=1", "cursor must be a next_cursor"),
        (&other_order, "cursor must be used with the sort and order that it was made with"),
        ("page=2", "'page' is not a known parameter"),
        ("%00=2", "'' is not a known parameter"),
    ] {
        let message = rig.get(&format!("/timers?{query}")).await.refused(400, 2);
        assert!(message.starts_with(start), "{query}: {message}");
    }
}
