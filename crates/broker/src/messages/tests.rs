use domain::Span;

use super::*;
use crate::rig::timer;

const PAYLOAD: &str = r#"{"tenantId":"acme","serviceCallId":"call-1","dueAt":"2030-01-31T12:00:00Z"}"#;

fn parse(text: &str) -> Result<ScheduleTimer, String> {
    ScheduleTimer::parse(text.as_bytes()).map_err(|invalid| invalid.to_string())
}

/// The bare payload with one field written differently. No value leaves the field out.
fn payload_with(field: &str, value: Option<&str>) -> String {
    let fields = [("tenantId", r#""acme""#), ("serviceCallId", r#""call-1""#), ("dueAt", r#""2030-01-31T12:00:00Z""#)];
    let written = fields.into_iter().filter_map(|(name, usual)| {
        let value = if name == field { value? } else { usual };
        Some(format!("\"{name}\":{value}"))
    });
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

fn envelope(more: &str) -> String {
    format!(r#"{{"type":"ScheduleTimer","payload":{PAYLOAD}{more}}}"#)
}

fn expected() -> ScheduleTimer {
    ScheduleTimer {
        tenant: Namespace::parse("acme").unwrap(),
        service_call: Key::parse("call-1").unwrap(),
        due_at: Timestamp::parse("dueAt", "2030-01-31T12:00:00Z").unwrap(),
        correlation_id: None,
    }
}

#[test]
fn a_command_is_read_with_and_without_its_envelope() {
    let whole = format!(
        r#"{{"id":"1","type":"ScheduleTimer","tenantId":"acme","correlationId":"c","timestampMs":1700000000000,"payload":{PAYLOAD}}}"#
    );
    let correlated = ScheduleTimer { correlation_id: Some(CorrelationId::parse("c").unwrap()), ..expected() };
    assert_eq!(parse(&whole), Ok(correlated.clone()));
    assert_eq!(parse(PAYLOAD), Ok(expected()));
    assert_eq!(parse(&envelope("")), Ok(expected()));
    let bare = format!(r#"{},"correlationId":"c"}}"#, PAYLOAD.trim_end_matches('}'));
    assert_eq!(parse(&bare), Ok(correlated));
}

#[test]
fn what_the_work_does_not_depend_on_may_be_missing_or_strange() {
    for more in [
        r#","id":null,"tenantId":null,"correlationId":null,"timestampMs":null"#,
        r#","correlationId":"""#,
        r#","traceparent":"00-1","version":3,"meta":{"tenantId":"other"}"#,
        r#","traceparent":1,"traceparent":2"#,
        r#","timestampMs":1.5e12"#,
        r#","timestampMs":123456789012345678901234567890"#,
    ] {
        assert_eq!(parse(&envelope(more)), Ok(expected()), "{more}");
    }
    let spaced = format!(" \n\t{PAYLOAD}\r\n");
    assert_eq!(parse(&spaced), Ok(expected()));
    let escaped = PAYLOAD.replace("tenantId", r"tenant\u0049d").replace("acme", r"\u0061cme");
    assert_eq!(parse(&escaped), Ok(expected()));
    // What only an envelope has means nothing in a bare payload, and the other way round.
    let bare = format!(r#"{},"id":1,"id":2,"timestampMs":"x"}}"#, PAYLOAD.trim_end_matches('}'));
    assert_eq!(parse(&bare), Ok(expected()));
    let inner = envelope("").replace("acme\"", r#"acme","correlationId":1,"correlationId":2"#);
    assert_eq!(parse(&inner), Ok(expected()));
    assert_eq!(parse(&envelope(r#","dueAt":1,"dueAt":2"#)), Ok(expected()));
    let crowded = format!(r#"{},"type_":"x","correlationid":7,"nested":[[[]]]}}"#, PAYLOAD.trim_end_matches('}'));
    assert_eq!(parse(&crowded), Ok(expected()));
}

#[test]
fn due_times_are_read_with_any_offset_past_or_not() {
    for (written, meant) in [
        ("2030-01-31T13:00:00+01:00", "2030-01-31T12:00:00Z"),
        ("2030-01-31T12:00:00.000Z", "2030-01-31T12:00:00Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("2001-09-09T01:46:40Z", "2001-09-09T01:46:40Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ] {
        let command = parse(&payload_with("dueAt", Some(&format!("\"{written}\"")))).unwrap();
        assert_eq!(command.due_at.to_string(), meant, "{written}");
    }
}

#[test]
fn keys_are_any_text_of_limited_length() {
    for key in ["é😀", " a b ", "a.b.*.>", "$SYS", &"k".repeat(255)] {
        let command = parse(&payload_with("serviceCallId", Some(&format!("\"{key}\"")))).unwrap();
        assert_eq!(command.service_call.as_str(), key);
    }
}

#[test]
fn the_request_is_an_event_at_any_time_that_keeps_what_is_there() {
    let request = ScheduleTimer { correlation_id: Some(CorrelationId::parse("c").unwrap()), ..expected() }.into_request();
    assert_eq!(request.asked, RequestedTime::At(expected().due_at));
    assert_eq!((request.earliest_allowed, request.on_conflict), (EarliestAllowed::Any, OnConflict::Keep));
    assert_eq!(request.target, Target::Event);
    assert_eq!(request.namespace.as_str(), "acme");
    assert_eq!(request.key.unwrap().as_str(), "call-1");
    assert_eq!(request.correlation_id.unwrap().as_str(), "c");
}

/// Every way in which a command can be wrong, with the sentence that says so.
fn refusals() -> Vec<(String, &'static str)> {
    let own = |field: &str, value: &str| payload_with(field, Some(value));
    let token = "tenantId must be printable ASCII without blanks";
    let mut table = vec![
        (String::new(), "message must be valid JSON"),
        (" ".to_owned(), "message must be valid JSON"),
        ("{".to_owned(), "message must be valid JSON"),
        ("schedule a timer".to_owned(), "message must be valid JSON"),
        (format!("{PAYLOAD}{PAYLOAD}"), "message must be valid JSON"),
        (format!("\u{feff}{PAYLOAD}"), "message must be valid JSON"),
        (PAYLOAD.replace('"', "'"), "message must be valid JSON"),
        (PAYLOAD.replace("acme", "ac\u{1}me"), "message must be valid JSON"),
        ("null".to_owned(), "message must be a JSON object"),
        ("\"ScheduleTimer\"".to_owned(), "message must be a JSON object"),
        ("42".to_owned(), "message must be a JSON object"),
        (format!("[{PAYLOAD}]"), "message must be a JSON object"),
        (format!(r#"{{"deep":{}{}}}"#, "[".repeat(64), "]".repeat(64)), "message must not be nested deeper than 64"),
        ("[".repeat(60_000), "message must not be nested deeper than 64"),
        (format!(r#"{{"pad":"{}"}}"#, "x".repeat(COMMAND_BYTES_MAX)), "message must not be longer than 65536 bytes"),
        ("{}".to_owned(), "serviceCallId is required"),
        (r#"{"serviceCallID":"a","tenantId":"a","dueAt":"2030-01-31T12:00:00Z"}"#.to_owned(), "serviceCallId is required"),
    ];
    for (field, complaint) in
        [("tenantId", "tenantId is required"), ("serviceCallId", "serviceCallId is required"), ("dueAt", "dueAt is required")]
    {
        table.push((payload_with(field, None), complaint));
        table.push((own(field, "null"), complaint));
    }
    for value in ["7", "true", "{}", "[]", r#""\ud800""#] {
        table.push((own("tenantId", value), "tenantId must be a string"));
        table.push((own("serviceCallId", value), "serviceCallId must be a string"));
        table.push((own("dueAt", value), "dueAt must be a string"));
    }
    for value in [r#""a b""#, r#"" a""#, r#""a.b""#, r#""*""#, r#""a>""#, r#""$SYS""#, r#""é""#, r#""\u007f""#] {
        let complaint = if value == r#""\u007f""# { "tenantId must not contain control characters" } else { token };
        table.push((own("tenantId", value), complaint));
    }
    table.push((own("tenantId", r#""""#), "tenantId must have 1 to 255 characters"));
    table.push((own("tenantId", &format!("\"{}\"", "t".repeat(256))), "tenantId must have 1 to 255 characters"));
    table.push((own("serviceCallId", r#""""#), "serviceCallId must have 1 to 255 characters"));
    table.push((own("serviceCallId", &format!("\"{}\"", "k".repeat(256))), "serviceCallId must have 1 to 255 characters"));
    table.push((own("serviceCallId", r#""a\nb""#), "serviceCallId must not contain control characters"));
    table.push((own("serviceCallId", r#""a\u0000b""#), "serviceCallId must not contain control characters"));
    for value in
        ["", "tomorrow", "2030-01-31", "2030-01-31T12:00:00", "2030-02-30T12:00:00Z", "1893456000000", "+10000-01-01T00:00:00Z"]
    {
        table.push((own("dueAt", &format!("\"{value}\"")), "dueAt must be an RFC 3339 date and time"));
    }
    table.push((own("dueAt", r#""1969-12-31T23:59:59.999999Z""#), "dueAt must not lie before 1970"));
    table.push((own("dueAt", r#""0000-01-01T00:00:00Z""#), "dueAt must not lie before 1970"));
    table.push((own("dueAt", r#""9999-12-31T23:59:59-01:00""#), "dueAt must lie between the years 0000 and 9999"));
    for field in ["tenantId", "serviceCallId", "dueAt"] {
        let twice = format!(r#"{},"{field}":"x"}}"#, PAYLOAD.trim_end_matches('}'));
        let complaint = match field {
            "tenantId" => "tenantId must not be given twice",
            "serviceCallId" => "serviceCallId must not be given twice",
            _ => "dueAt must not be given twice",
        };
        table.push((twice, complaint));
    }
    table
}

#[test]
fn payloads_that_can_never_work_are_refused_with_field_and_rule() {
    let table = refusals();
    assert!(table.len() >= 50, "{} kinds", table.len());
    for (text, complaint) in table {
        let refusal = parse(&text).unwrap_err();
        assert!(refusal.starts_with(complaint), "{text:.200}: {refusal}");
    }
    assert_eq!(ScheduleTimer::parse(b"{\"tenantId\":\"\xff\"}").unwrap_err().to_string(), "message must be UTF-8");
}

#[test]
fn envelopes_that_can_never_work_are_refused_with_field_and_rule() {
    for (text, complaint) in [
        (format!(r#"{{"payload":{PAYLOAD}}}"#), "type is required: ScheduleTimer"),
        (format!(r#"{{"type":null,"payload":{PAYLOAD}}}"#), "type is required: ScheduleTimer"),
        (format!(r#"{{"type":"DueTimeReached","payload":{PAYLOAD}}}"#), "type must be ScheduleTimer"),
        (format!(r#"{{"type":"scheduletimer","payload":{PAYLOAD}}}"#), "type must be ScheduleTimer"),
        (format!(r#"{{"type":["ScheduleTimer"],"payload":{PAYLOAD}}}"#), "type must be a string"),
        (envelope(r#","type":"ScheduleTimer""#), "type must not be given twice"),
        (r#"{"type":"ScheduleTimer"}"#.to_owned(), "payload is required"),
        (r#"{"type":"ScheduleTimer","payload":null}"#.to_owned(), "payload is required"),
        (r#"{"type":"ScheduleTimer","payload":[]}"#.to_owned(), "payload must be a JSON object"),
        (format!(r#"{{"type":"ScheduleTimer","payload":{:?}}}"#, PAYLOAD), "payload must be a JSON object"),
        (envelope(r#","payload":{}"#), "payload must not be given twice"),
        (r#"{"type":"ScheduleTimer","payload":{}}"#.to_owned(), "payload.serviceCallId is required"),
        (envelope("").replace("acme", "a.b"), "payload.tenantId must be printable ASCII"),
        (envelope("").replace("2030", "20x0"), "payload.dueAt must be an RFC 3339 date and time"),
        (envelope(r#","tenantId":"other""#), "tenantId must be the same in the envelope and in the payload"),
        (envelope(r#","tenantId":"""#), "tenantId must be the same in the envelope and in the payload"),
        (envelope(r#","tenantId":7"#), "tenantId must be a string"),
        (envelope(r#","tenantId":"acme","tenantId":"acme""#), "tenantId must not be given twice"),
        (envelope(r#","id":7"#), "id must be a string"),
        (envelope(r#","timestampMs":"1700000000000""#), "timestampMs must be a number"),
        (envelope(r#","timestampMs":{}"#), "timestampMs must be a number"),
        (envelope(r#","correlationId":7"#), "correlationId must be a string"),
        (envelope(r#","correlationId":"a\r\nb""#), "correlationId must not contain control characters"),
        (envelope(r#","correlationId":"a","correlationId":"b""#), "correlationId must not be given twice"),
        (envelope(&format!(r#","correlationId":"{}""#, "c".repeat(256))), "correlationId must have 1 to 255 characters"),
    ] {
        let refusal = parse(&text).unwrap_err();
        assert!(refusal.starts_with(complaint), "{text}: {refusal}");
    }
}

#[test]
fn refusals_of_the_use_cases_speak_of_the_fields_of_the_message() {
    let refusal = Invalid::new("execute_at", "must not be more than 1m ahead");
    assert_eq!(in_words_of_the_command(refusal).to_string(), "dueAt must not be more than 1m ahead");
}

#[test]
fn an_event_is_written_in_its_order_and_names_whom_it_concerns() {
    let now = Timestamp::parse("now", "2030-01-31T12:00:00.012345Z").unwrap();
    let timer = timer(Some("call-1"), Some("c\"1"));
    let expected = format!(
        concat!(
            r#"{{"id":"{}","type":"DueTimeReached","tenantId":"acme","correlationId":"c\"1","timestampMs":1896091200012,"#,
            r#""payload":{{"tenantId":"acme","serviceCallId":"call-1","reachedAt":"2030-01-31T12:00:00.012345Z"}}}}"#
        ),
        timer.webhook_id()
    );
    assert_eq!(due_time_reached(&timer, now), expected);
}

#[test]
fn an_event_has_one_id_for_one_due_time() {
    let id = |timer: &Timer, now| {
        let event: serde_json::Value = serde_json::from_str(&due_time_reached(timer, now)).unwrap();
        event["id"].as_str().unwrap().to_owned()
    };
    let first = timer(Some("call-1"), None);
    let later = first.execute_at.saturating_add(Span::from_secs(5));
    assert_eq!(id(&first, first.execute_at), id(&first, later));
    assert_ne!(id(&first, later), id(&Timer { execute_at: later, ..first.clone() }, later));
}

#[test]
fn an_event_without_correlation_or_key_says_what_it_can() {
    let timer = timer(None, None);
    let event: serde_json::Value = serde_json::from_str(&due_time_reached(&timer, timer.execute_at)).unwrap();
    assert!(event.get("correlationId").is_none());
    assert_eq!(event["payload"]["serviceCallId"], timer.id().to_string());
}
