use serde::Serialize;

use crate::{
    Callback, Definition, Delivery, Group, JsonText, Key, Namespace, NewTimer, Next, OnConflict, Options, RequestedTime, Status,
    Timer, TimerId, Timestamp,
};

/// How a timer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending<'a> {
    pub status: Status,
    pub at: Timestamp,
    /// How many deliveries were started.
    pub attempt: u32,
    pub last_error: Option<&'a str>,
}

impl<'a> Ending<'a> {
    /// The end that follows from the attempt with this number, if it is one.
    pub fn of(next: &'a Next, attempt: u32) -> Option<Self> {
        let failed = |status, at: &Timestamp, error: &'a String, attempt| {
            Some(Self { status, at: *at, attempt, last_error: Some(error.as_str()) })
        };
        match next {
            Next::Completed { at } => Some(Self { status: Status::Completed, at: *at, attempt, last_error: None }),
            Next::Failed { at, error } => failed(Status::Failed, at, error, attempt),
            Next::GivenUp { at, error } => failed(Status::Failed, at, error, attempt.saturating_sub(1)),
            Next::Expired { at, error, is_called } => {
                failed(Status::Expired, at, error, attempt.saturating_sub(u32::from(!is_called)))
            }
            Next::Pending { .. } | Next::Again { .. } => None,
        }
    }
}

/// What the receiver of a follow-up gets.
#[derive(Serialize)]
struct Notice<'a> {
    id: TimerId,
    namespace: &'a Namespace,
    key: Option<&'a Key>,
    group: Option<&'a Group>,
    status: Status,
    execute_at: Timestamp,
    executed_at: Timestamp,
    attempt: u32,
    last_error: Option<&'a str>,
    /// What the client gave as the payload of the follow-up.
    payload: Option<&'a JsonText>,
}

/// The timer that tells of the end of another: it calls `on_success` of a completed one, `on_failure` of one that failed or
/// expired. `None` where the timer has no such callback.
///
/// It must be registered before the end is recorded, so that a crash in between loses nothing. A node that records the same end
/// once more makes the same timer: its id follows from the timer, its revision and the kind of its end.
pub fn follow_up(timer: &Timer, ending: &Ending<'_>) -> Option<NewTimer> {
    let Definition { options, .. } = &timer.definition;
    let (callback, kind) = match ending.status {
        Status::Completed => (options.on_success.as_deref()?, "on_success"),
        Status::Failed | Status::Expired => (options.on_failure.as_deref()?, "on_failure"),
        _ => return None,
    };
    let definition = Definition {
        id: TimerId::following(timer.id(), timer.revision, kind),
        namespace: timer.definition.namespace.clone(),
        key: None,
        asked: RequestedTime::At(ending.at),
        callback: Callback { payload: Some(notice(timer, ending, callback)), ..callback.clone() },
        metadata: timer.definition.metadata.clone(),
        correlation_id: timer.definition.correlation_id.clone(),
        retry_policy: timer.definition.retry_policy,
        delivery: Delivery::AtLeastOnce,
        group: None,
        options: Options { trace: timer.definition.options.trace.clone(), ..Options::default() },
    };
    Some(NewTimer { definition, execute_at: ending.at, on_conflict: OnConflict::Reject, created_at: ending.at })
}

fn notice(timer: &Timer, ending: &Ending<'_>, callback: &Callback) -> JsonText {
    let notice = Notice {
        id: timer.id(),
        namespace: &timer.definition.namespace,
        key: timer.definition.key.as_ref(),
        group: timer.definition.group.as_ref(),
        status: ending.status,
        execute_at: timer.execute_at,
        executed_at: ending.at,
        attempt: ending.attempt,
        last_error: ending.last_error,
        payload: callback.payload(),
    };
    // These are plain values: nothing in here can fail to be written.
    JsonText::trusted(serde_json::to_string(&notice).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);

    fn callback(host: &str) -> Box<Callback> {
        Box::new(Callback::from_json(&format!(r#"{{"type":"http","url":"http://{host}/","payload":{{"n": 1.0}}}}"#)).unwrap())
    }

    fn timer(options: Options) -> Timer {
        Timer {
            definition: Definition {
                id: TimerId::parse("id", "00000000-0000-7000-8000-000000000001").unwrap(),
                namespace: Namespace::parse("tenant").unwrap(),
                key: Some(Key::parse("k").unwrap()),
                asked: RequestedTime::At(AT),
                callback: *callback("a"),
                metadata: Some(JsonText::trusted("[1]")),
                correlation_id: None,
                retry_policy: None,
                delivery: Delivery::AtMostOnce,
                group: None,
                options,
            },
            execute_at: AT,
            status: Status::Executing,
            attempt: 2,
            last_error: None,
            executed_at: None,
            created_at: AT,
            updated_at: AT,
            revision: 3,
            pause: None,
        }
    }

    #[test]
    fn an_end_is_followed_by_its_own_callback() {
        let both = Options { on_success: Some(callback("s")), on_failure: Some(callback("f")), ..Options::default() };
        let error = || "503".to_owned();
        for (next, expected) in [
            (Next::Completed { at: AT }, Some(("http://s/", 2))),
            (Next::Failed { at: AT, error: error() }, Some(("http://f/", 2))),
            (Next::GivenUp { at: AT, error: error() }, Some(("http://f/", 1))),
            (Next::Expired { at: AT, error: error(), is_called: true }, Some(("http://f/", 2))),
            (Next::Expired { at: AT, error: error(), is_called: false }, Some(("http://f/", 1))),
            (Next::Pending { at: AT, attempt: 2, error: None }, None),
            (Next::Again { at: AT }, None),
        ] {
            let follow = |options: &Options| follow_up(&timer(options.clone()), &Ending::of(&next, 2)?);
            let followed = follow(&both);
            let json = followed.as_ref().map(|new| new.definition.callback.to_json());
            match expected {
                Some((url, attempt)) => {
                    let json = json.unwrap();
                    assert!(json.contains(url) && json.contains(&format!(r#""attempt":{attempt}"#)), "{next:?}: {json}");
                }
                None => assert_eq!(json, None, "{next:?}"),
            }
            assert_eq!(follow(&Options::default()), None, "{next:?}");
            assert_eq!(follow(&both), followed, "the same end is followed by the same timer");
        }
    }

    #[test]
    fn a_follow_up_tells_what_has_ended_and_carries_what_was_given() {
        let timer = timer(Options { on_failure: Some(callback("f")), ..Options::default() });
        let next = Next::Failed { at: AT, error: "out of \"stock\"".to_owned() };
        let new = follow_up(&timer, &Ending::of(&next, 2).unwrap()).unwrap();
        assert_eq!(
            new.definition.callback.payload().unwrap().as_str(),
            r#"{"id":"00000000-0000-7000-8000-000000000001","namespace":"tenant","key":"k","group":null,"status":"failed","execute_at":"2030-01-01T00:00:00Z","executed_at":"2030-01-01T00:00:00Z","attempt":2,"last_error":"out of \"stock\"","payload":{"n": 1.0}}"#
        );
        assert_eq!((new.definition.metadata, new.definition.key, new.execute_at), (timer.definition.metadata.clone(), None, AT));
    }

    #[test]
    fn each_end_has_an_id_of_its_own() {
        let id = timer(Options::default()).id();
        let ids = [
            TimerId::following(id, 1, "on_success"),
            TimerId::following(id, 1, "on_failure"),
            TimerId::following(id, 2, "on_success"),
            TimerId::following(TimerId::LAST, 1, "on_success"),
        ];
        for (place, one) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(one) && *one != id);
        }
        assert_eq!(ids[0], TimerId::following(id, 1, "on_success"));
    }
}
