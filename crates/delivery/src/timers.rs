//! Timers for tests.

use domain::{Callback, Definition, Delivery, Namespace, Options, RequestedTime, Status, Timer, TimerId, Timestamp};

/// A first attempt at `url`; `more` are further members of the callback: `,"payload":1`.
pub(crate) fn http(url: &str, more: &str) -> Timer {
    calling(Callback::from_json(&format!(r#"{{"type":"http","url":"{url}"{more}}}"#)).unwrap())
}

/// A first attempt to publish to `topic`.
pub(crate) fn nats(topic: &str, more: &str) -> Timer {
    calling(Callback::from_json(&format!(r#"{{"type":"nats","topic":"{topic}"{more}}}"#)).unwrap())
}

/// A first attempt to announce an event.
pub(crate) fn event() -> Timer {
    calling(Callback::EVENT)
}

fn calling(callback: Callback) -> Timer {
    let due = Timestamp::parse("execute_at", "2030-01-31T12:00:00.25Z").unwrap();
    Timer {
        definition: Definition {
            id: TimerId::parse("id", "0190163d-8694-739b-aea5-966c26f8ad91").unwrap(),
            namespace: Namespace::default(),
            key: None,
            asked: RequestedTime::At(due),
            callback,
            metadata: None,
            correlation_id: None,
            retry_policy: None,
            delivery: Delivery::AtLeastOnce,
            group: None,
            options: Options::default(),
        },
        execute_at: due,
        status: Status::Executing,
        attempt: 1,
        last_error: None,
        executed_at: None,
        created_at: due,
        updated_at: due,
        revision: 1,
        pause: None,
    }
}
