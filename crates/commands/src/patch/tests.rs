use domain::{Span, Status, TimerId};

use super::*;
use crate::rig::{NOW, callback, rules};

fn timer() -> Timer {
    let definition = domain::Definition {
        id: TimerId::random(NOW),
        namespace: domain::Namespace::default(),
        key: None,
        asked: RequestedTime::After(Span::from_secs(1)),
        callback: callback("a"),
        metadata: Some(JsonText::trusted("1")),
        correlation_id: CorrelationId::parse("c").ok(),
        retry_policy: Some(RetryPolicy::default()),
        delivery: Delivery::AtLeastOnce,
        group: None,
        options: domain::Options::default(),
    };
    Timer {
        definition,
        // Nearer than the minimum delay allows.
        execute_at: NOW.saturating_add(Span::from_secs(1)),
        status: Status::Pending,
        attempt: 0,
        last_error: None,
        executed_at: None,
        created_at: NOW,
        updated_at: NOW,
        revision: 3,
        pause: None,
    }
}

fn http(http: HttpPatch) -> Patch {
    Patch { http, ..Patch::default() }
}

fn posting(rest: &str) -> Callback {
    Callback::from_json(&format!(r#"{{"type":"http","url":"http://a/",{rest}}}"#)).unwrap()
}

#[test]
fn a_patch_changes_what_it_names_and_nothing_else() {
    type Change = fn(&mut Timer);
    let table: Vec<(Patch, Change)> = vec![
        (Patch::default(), |_| {}),
        (Patch { metadata: Field::Clear, ..Patch::default() }, |timer| timer.definition.metadata = None),
        (Patch { metadata: Field::Set(JsonText::trusted("2")), ..Patch::default() }, |timer| {
            timer.definition.metadata = Some(JsonText::trusted("2"));
        }),
        (Patch { correlation_id: Field::Clear, ..Patch::default() }, |timer| timer.definition.correlation_id = None),
        (Patch { retry_policy: Field::Clear, ..Patch::default() }, |timer| timer.definition.retry_policy = None),
        (Patch { delivery: Some(Delivery::AtMostOnce), ..Patch::default() }, |timer| {
            timer.definition.delivery = Delivery::AtMostOnce;
        }),
        (Patch { callback: Some(callback("b")), ..Patch::default() }, |timer| timer.definition.callback = callback("b")),
        (Patch { asked: Some(RequestedTime::After(Span::from_secs(9))), ..Patch::default() }, |timer| {
            timer.definition.asked = RequestedTime::After(Span::from_secs(9));
            timer.execute_at = NOW.saturating_add(Span::from_secs(9));
        }),
        (
            Patch { asked: Some(RequestedTime::After(Span::ZERO)), earliest_allowed: EarliestAllowed::Now, ..Patch::default() },
            |timer| {
                timer.definition.asked = RequestedTime::After(Span::ZERO);
                timer.execute_at = NOW;
            },
        ),
        (http(HttpPatch { url: CallbackUrl::parse("http://b/").ok(), ..HttpPatch::default() }), |timer| {
            timer.definition.callback = callback("b");
        }),
        (http(HttpPatch { payload: Field::Set(JsonText::trusted("2")), ..HttpPatch::default() }), |timer| {
            timer.definition.callback = posting(r#""payload":2"#);
        }),
        (http(HttpPatch { timeout: Some(Span::from_secs(9)), ..HttpPatch::default() }), |timer| {
            timer.definition.callback = posting(r#""timeout":"9s""#);
        }),
    ];
    for (patch, change) in table {
        let before = timer();
        let mut expected = before.clone();
        change(&mut expected);
        assert_eq!(patch.is_empty(), expected == before, "{patch:?}");
        assert_eq!(patch.clone().apply(before, NOW, &rules()), Ok(expected), "{patch:?}");
    }
}

#[test]
fn a_patch_must_keep_the_rules() {
    let nats = Callback::from_json(r#"{"type":"nats","topic":"a"}"#).unwrap();
    for (patch, complaint) in [
        (Patch { asked: Some(RequestedTime::At(NOW)), ..Patch::default() }, "execute_at must be in the future"),
        (Patch { asked: Some(RequestedTime::After(Span::from_secs(4))), ..Patch::default() }, "delay must be at least 5s"),
        (Patch { callback: Some(callback("denied")), ..Patch::default() }, "url must not be denied"),
        (http(HttpPatch { url: CallbackUrl::parse("http://denied/").ok(), ..HttpPatch::default() }), "url must not be denied"),
        (Patch { callback: Some(nats), ..Patch::default() }, "callback.type must be http: no NATS server is configured"),
    ] {
        assert_eq!(patch.apply(timer(), NOW, &rules()).unwrap_err().to_string(), complaint);
    }
}

#[test]
fn parts_of_a_post_stay_as_they_are_unless_they_are_named() {
    let before = posting(r#""headers":{"X-A":"1"},"payload":1,"timeout":"9s","protocol":"timer""#);
    let after = posting(r#""headers":{"X-A":"1"},"timeout":"9s","protocol":"timer""#);
    let mut timer = timer();
    timer.definition.callback = before;
    let patch = http(HttpPatch { payload: Field::Clear, ..HttpPatch::default() });
    assert_eq!(patch.apply(timer, NOW, &rules()).unwrap().definition.callback, after);
}

#[test]
fn what_is_no_post_has_no_parts_to_change() {
    let mut timer = timer();
    for callback in [Callback::from_json(r#"{"type":"nats","topic":"a"}"#).unwrap(), Callback::EVENT] {
        timer.definition.callback = callback;
        for (patch, field) in [
            (HttpPatch { url: CallbackUrl::parse("http://b/").ok(), ..HttpPatch::default() }, "callback.url"),
            (HttpPatch { payload: Field::Clear, ..HttpPatch::default() }, "callback.payload"),
            (HttpPatch { timeout: Some(Span::from_secs(1)), ..HttpPatch::default() }, "callback.timeout"),
        ] {
            let complaint = http(patch).apply(timer.clone(), NOW, &rules()).unwrap_err().to_string();
            assert_eq!(complaint, format!("{field} cannot be changed: the timer does not call a URL"));
        }
        assert_eq!(Patch::default().apply(timer.clone(), NOW, &rules()), Ok(timer.clone()));
    }
}
