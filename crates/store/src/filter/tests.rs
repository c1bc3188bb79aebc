use super::*;

const AT: Timestamp = Timestamp::from_micros(1_000_000);

fn candidate() -> Candidate<'static> {
    Candidate {
        namespace: "shop",
        key: Some("order-7"),
        group: Some("night"),
        execute_at: AT,
        created_at: AT,
        correlation_id: Some("c-1"),
        metadata: Some(r#"{"a": {"b": "x"}, "n": 1.10, "o": [1, 2]}"#),
        destination: Some("a.example:80".into()),
    }
}

fn filter(json: &str) -> Filter {
    serde_json::from_str(json).unwrap()
}

#[test]
fn every_condition_on_a_definition_must_hold() {
    for (json, expected) in [
        ("{}", true),
        (r#"{"namespace":["shop"]}"#, true),
        (r#"{"namespace":["default","shop"]}"#, true),
        (r#"{"namespace":["default"]}"#, false),
        (r#"{"key":"order-7"}"#, true),
        (r#"{"key":"order-"}"#, false),
        (r#"{"key_prefix":"order-"}"#, true),
        (r#"{"key_prefix":"Order-"}"#, false),
        (r#"{"group":"night"}"#, true),
        (r#"{"group":"day"}"#, false),
        (r#"{"due_from":"1970-01-01T00:00:01Z"}"#, true),
        (r#"{"due_from":"1970-01-01T00:00:01.000001Z"}"#, false),
        (r#"{"due_to":"1970-01-01T00:00:01Z"}"#, false),
        (r#"{"due_to":"1970-01-01T00:00:01.000001Z"}"#, true),
        (r#"{"created_from":"1970-01-01T00:00:01Z","created_to":"1970-01-01T00:00:02Z"}"#, true),
        (r#"{"created_from":"1970-01-01T00:00:02Z"}"#, false),
        (r#"{"correlation_id":"c-1"}"#, true),
        (r#"{"correlation_id":"c"}"#, false),
        (r#"{"destination":"a.example:80"}"#, true),
        (r#"{"destination":"a.example"}"#, false),
        (r#"{"metadata":{"a.b":"x","n":"1.10"}}"#, true),
        (r#"{"metadata":{"a.b":"x","n":"1.1"}}"#, false),
        (r#"{"members":{"o":"[1,2]","n":"1.10"}}"#, true),
        (r#"{"members":{"n":"\"1.10\""}}"#, false),
        (r#"{"members":{"x":"null"}}"#, false),
        (r#"{"namespace":["shop"],"key":"order-8"}"#, false),
    ] {
        assert_eq!(filter(json).fits_definition(&candidate()), expected, "{json}");
    }
    let bare = Candidate { key: None, group: None, correlation_id: None, metadata: None, destination: None, ..candidate() };
    for json in [
        r#"{"key_prefix":""}"#,
        r#"{"metadata":{"a":"x"}}"#,
        r#"{"members":{"a":"1"}}"#,
        r#"{"destination":""}"#,
        r#"{"correlation_id":"c"}"#,
    ] {
        assert!(!filter(json).fits_definition(&bare), "{json}");
    }
    assert!(filter("{}").fits_definition(&bare));
}

#[test]
fn status_and_error_are_asked_of_where_a_timer_stands() {
    for (json, status, error, expected) in [
        ("{}", Status::Failed, None, true),
        (r#"{"status":["failed","canceled"]}"#, Status::Failed, None, true),
        (r#"{"status":["failed","canceled"]}"#, Status::Pending, None, false),
        (r#"{"error":"500"}"#, Status::Pending, Some("HTTP 500"), true),
        (r#"{"error":"http"}"#, Status::Pending, Some("HTTP 500"), false),
        (r#"{"error":"500"}"#, Status::Pending, None, false),
    ] {
        assert_eq!(filter(json).fits_standing(status, error), expected, "{json} {status} {error:?}");
    }
}

#[test]
fn a_filter_reads_back_as_it_was_written() {
    let full = r#"{"status":["pending","failed"],"namespace":["a","b,c"],"key":"k","key_prefix":"k","group":"g","due_from":"2030-01-01T00:00:00Z","due_to":"2031-01-01T00:00:00Z","created_from":"2020-01-01T00:00:00.000001Z","created_to":"2021-01-01T00:00:00Z","correlation_id":"c","destination":"d:1","metadata":{"a.b":"1"},"members":{"m":"[]"},"error":"e"}"#;
    assert_eq!(serde_json::to_string(&filter(full)).unwrap(), full);
    assert_eq!(serde_json::to_string(&Filter::default()).unwrap(), "{}");
    for wrong in [r#"{"status":["done"]}"#, r#"{"namespace":[""]}"#, r#"{"due_from":"today"}"#, r#"{"x":1}"#] {
        assert!(serde_json::from_str::<Filter>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn only_status_and_namespace_are_counted_by_some_stores() {
    for (json, expected) in [
        ("{}", true),
        (r#"{"status":["failed"],"namespace":["a","b"]}"#, true),
        (r#"{"key":"k"}"#, false),
        (r#"{"status":["failed"],"error":"x"}"#, false),
        (r#"{"members":{"a":"1"}}"#, false),
    ] {
        assert_eq!(filter(json).is_by_status_and_namespace(), expected, "{json}");
    }
}
