use domain::{DurationHistogram, Namespace, Next, Span};
use serde_json::json;
use store::{Digest, NodeDigest, NodeId, NodeReceiver, NodeStats, ReceiverReport, SLOT_MICROS};

use crate::rig::{NOW, Rig};

#[tokio::test]
async fn what_is_due_comes_in_buckets() {
    let rig = Rig::new();
    for seconds in [30, 90, 100] {
        rig.created(&format!(r#"{{"seconds":{seconds},"url":"http://a"}}"#)).await;
    }
    let met = rig.get("/stats/due?from=2030-01-01T00:00:10Z&to=2030-01-01T00:03:00Z").await.json()["data"].clone();
    assert_eq!(
        met,
        json!({"from": "2030-01-01T00:00:00Z", "to": "2030-01-01T00:03:00Z", "step_seconds": 60, "buckets": [
            {"at": "2030-01-01T00:00:00Z", "pending": 1},
            {"at": "2030-01-01T00:01:00Z", "pending": 2},
            {"at": "2030-01-01T00:02:00Z", "pending": 0},
        ], "pending_is_estimate": false, "complete": true})
    );
    let hours = rig.get("/stats/due?step=PT1H&namespace=default,other").await.json()["data"]["buckets"].clone();
    assert_eq!((hours.as_array().unwrap().len(), &hours[0]["pending"]), (60, &json!(3)));
    assert_eq!(rig.get("/stats/due?namespace=other").await.json()["data"]["buckets"][0]["pending"], 0);
}

#[tokio::test]
async fn what_was_fired_comes_in_buckets_with_its_lateness() {
    let rig = Rig::new();
    let mut lateness = DurationHistogram::default();
    (0..99).for_each(|_| lateness.record(1_000));
    lateness.record(50_500);
    let digest = Digest {
        created: 5,
        fired: 100,
        completed: 97,
        failed: 1,
        retried: 2,
        lateness_max_micros: 50_500,
        lateness,
        ..Digest::default()
    };
    let digests = vec![NodeDigest { node: NodeId(1), minute: NOW.minute() - 1, namespace: None, digest }];
    let forget_before = NOW.saturating_sub(Span::from_secs(3_600));
    rig.store.record_stats(&NodeStats { digests, receivers: Vec::new(), forget_before }).await.unwrap();
    let met = rig.get("/stats/fired").await.json()["data"].clone();
    assert_eq!((met["from"].as_str(), met["to"].as_str()), (Some("2029-12-31T23:01:00Z"), Some("2030-01-01T00:01:00Z")));
    let buckets = met["buckets"].as_array().unwrap();
    let nothing = json!({"at": "2030-01-01T00:00:00Z", "created": 0, "fired": 0, "completed": 0, "failed": 0, "retried": 0,
        "lateness_p50_ms": null, "lateness_p99_ms": null, "lateness_max_ms": null});
    assert_eq!((buckets.len(), &buckets[59]), (60, &nothing));
    let minute = &buckets[58];
    assert_eq!((&minute["created"], &minute["fired"], &minute["completed"]), (&json!(5), &json!(100), &json!(97)));
    assert_eq!(minute["lateness_max_ms"], json!(50.5));
    for (quantile, millis) in [("lateness_p50_ms", 1.0), ("lateness_p99_ms", 1.0)] {
        let met = minute[quantile].as_f64().unwrap();
        assert!((met / millis - 1.0_f64).abs() < 0.25, "{quantile}: {met}");
    }
}

#[tokio::test]
async fn a_bad_period_is_refused_by_name() {
    let rig = Rig::new();
    for (query, message) in [
        ("from=tomorrow", "from must be an RFC 3339 date and time such as 2030-01-31T12:00:00Z"),
        ("to=2029-01-01T00:00:00Z&from=2030-01-01T00:00:00Z", "to must be later than from"),
        ("step=soon", "step must be a duration such as 90s, 1h30m or PT15M"),
        ("step=1s", "step must be a number of whole minutes from 1m to 366d"),
        ("from=2030-01-01T00:00:00Z&to=2040-01-01T00:00:00Z", "step must be longer: there would be more than 1440 buckets"),
        ("namespace=", "namespace must have 1 to 255 characters"),
        ("namespace=a,,b", "namespace must have 1 to 255 characters"),
        ("step=1m&step=1m", "step must not be given twice"),
        ("until=1", "'until' is not a known parameter"),
        ("namespace=%ff", "namespace must be valid UTF-8"),
    ] {
        for path in ["/stats/due", "/stats/fired"] {
            assert_eq!(rig.get(&format!("{path}?{query}")).await.refused(400, 2), message, "{path}?{query}");
        }
    }
    let many = vec!["a"; 101].join(",");
    assert_eq!(
        rig.get(&format!("/destinations?namespace={many}")).await.refused(400, 2),
        "namespace must name at most 100 namespaces"
    );
}

#[tokio::test]
async fn receivers_are_shown_with_their_health_and_nothing_secret() {
    let rig = Rig::new();
    let report = ReceiverReport {
        in_flight: 3,
        calls: vec![(NOW.as_micros() / SLOT_MICROS, 8, 2)],
        failures_in_a_row: 1,
        failed_at_micros: Some(NOW.as_micros()),
        last_error: Some("answered 503 Service Unavailable".to_owned()),
        retries: vec![(NOW.minute() + 3, 2)],
        ..ReceiverReport::default()
    };
    let receivers = vec![NodeReceiver {
        node: NodeId(1),
        namespace: Namespace::default(),
        destination: "a.example:443".to_owned(),
        written_at: NOW,
        report,
    }];
    rig.store.record_stats(&NodeStats { digests: Vec::new(), receivers, forget_before: NOW }).await.unwrap();
    let shown = json!({"destinations": [{"destination": "a.example:443", "health": "good", "in_flight": 3, "ok_1m": 8,
        "failed_1m": 2, "ok_10m": 8, "failed_10m": 2, "p50_ms": null, "p99_ms": null, "failures_in_a_row": 1,
        "last_error": "answered 503 Service Unavailable", "pending_retries": 2}], "complete": true});
    assert_eq!(rig.get("/destinations").await.json()["data"], shown);
    let tenant = rig.issued(r#"["other"]"#, "read").await;
    let nothing = json!({"destinations": [], "complete": true});
    assert_eq!(rig.call_with(&tenant, "GET", "/destinations", "").await.json()["data"], nothing);
    assert_eq!(
        rig.call_with(&tenant, "GET", "/destinations?namespace=default", "").await.refused(403, 4),
        "namespace must be one that this key opens"
    );
}

#[tokio::test]
async fn namespaces_are_shown_with_what_they_have() {
    let rig = Rig::new();
    rig.created(r#"{"seconds":10,"url":"http://a"}"#).await;
    rig.settle_all(&Next::Failed { at: NOW, error: "503".to_owned() }).await;
    rig.created(r#"{"seconds":10,"url":"http://a"}"#).await;
    rig.clock.advance(Span::from_secs(60));
    let shown = json!({"namespaces": [{"name": "default", "pending": 1, "failed": 1, "oldest_overdue": "2030-01-01T00:00:10Z",
        "has_retry_policy": false, "retry_policy": null, "has_signing_secret": false, "has_subjects": false}],
        "pending_is_estimate": false, "failed_is_estimate": false, "complete": true});
    assert_eq!(rig.get("/namespaces").await.json()["data"], shown);
    let tenant = rig.issued(r#"["other"]"#, "read").await;
    let seen = rig.call_with(&tenant, "GET", "/namespaces", "").await.json()["data"]["namespaces"].clone();
    assert_eq!((seen.as_array().unwrap().len(), &seen[0]["name"]), (1, &json!("other")));
}
