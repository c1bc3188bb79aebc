use bytes::Bytes;

const PAYLOAD: &str = r#"{"tenantId":"acme","serviceCallId":"never","dueAt":"2030-01-31T12:00:00Z"}"#;

/// Messages that can never become a timer, and a few words that must stand in the reason.
pub fn malformed() -> Vec<(Bytes, &'static str)> {
    let mut all: Vec<(Bytes, &'static str)> = Vec::new();
    let mut add = |body: Vec<u8>, words| all.push((Bytes::from(body), words));
    not_even_json(&mut add);
    for (field, value, words) in PARTS {
        add(payload_with(field, *value).into_bytes(), words);
    }
    for (body, words) in ENVELOPES {
        add(body.replace("PAYLOAD", PAYLOAD).into_bytes(), words);
    }
    // The same complaint from within an envelope says where.
    for (field, words) in
        [("tenantId", "payload.tenantId"), ("serviceCallId", "payload.serviceCallId"), ("dueAt", "payload.dueAt")]
    {
        add(format!(r#"{{"type":"ScheduleTimer","payload":{}}}"#, payload_with(field, Some("7"))).into_bytes(), words);
    }
    for (field, chars, words) in [("tenantId", 256, "tenantId"), ("serviceCallId", 256, "serviceCallId")] {
        add(payload_with(field, Some(&format!("\"{}\"", "x".repeat(chars)))).into_bytes(), words);
    }
    let long = format!(r#","correlationId":"{}"}}"#, "x".repeat(256));
    add(format!("{}{long}", PAYLOAD.trim_end_matches('}')).into_bytes(), "correlationId");
    all
}

fn not_even_json(add: &mut impl FnMut(Vec<u8>, &'static str)) {
    for text in ["", " ", "hello", "{", "}", "{]", PAYLOAD.trim_end_matches('}'), "\u{feff}{}", "{'tenantId':'acme'}", "NaN"] {
        add(text.as_bytes().to_vec(), "message");
    }
    for text in ["null", "true", "42", "\"ScheduleTimer\"", "[]", "[1,2,3]"] {
        add(text.as_bytes().to_vec(), "message");
    }
    add(format!("[{PAYLOAD}]").into_bytes(), "message");
    add(format!("{PAYLOAD}{PAYLOAD}").into_bytes(), "message");
    add(format!("{PAYLOAD} and more").into_bytes(), "message");
    add(vec![0xff, 0xfe, 0x00, 0x01], "UTF-8");
    add(PAYLOAD.replace("never", "n\u{e9}ver").chars().map(|c| c as u8).collect(), "UTF-8");
    add(vec![0; 100], "message");
    add(format!(r#"{{"deep":{}{}}}"#, "[".repeat(2_000), "]".repeat(2_000)).into_bytes(), "message");
    add(format!(r#"{{"large":"{}"}}"#, "x".repeat(200 * 1024)).into_bytes(), "bytes");
}

/// A field of the bare payload, what stands there instead (nothing: it is missing), and the field in the reason.
const PARTS: &[(&str, Option<&str>, &str)] = &[
    ("tenantId", None, "tenantId is required"),
    ("serviceCallId", None, "serviceCallId is required"),
    ("dueAt", None, "dueAt is required"),
    ("tenantId", Some("null"), "tenantId is required"),
    ("serviceCallId", Some("null"), "serviceCallId is required"),
    ("dueAt", Some("null"), "dueAt is required"),
    ("tenantId", Some("7"), "tenantId must be a string"),
    ("serviceCallId", Some("7"), "serviceCallId must be a string"),
    ("dueAt", Some("1893456000000"), "dueAt must be a string"),
    ("dueAt", Some("{}"), "dueAt must be a string"),
    ("tenantId", Some("[\"acme\"]"), "tenantId must be a string"),
    ("serviceCallId", Some("true"), "serviceCallId must be a string"),
    ("tenantId", Some(r#""""#), "tenantId"),
    ("serviceCallId", Some(r#""""#), "serviceCallId"),
    ("dueAt", Some(r#""""#), "dueAt"),
    ("tenantId", Some(r#""a.b""#), "tenantId"),
    ("tenantId", Some(r#""*""#), "tenantId"),
    ("tenantId", Some(r#""a>""#), "tenantId"),
    ("tenantId", Some(r#""$SYS""#), "tenantId"),
    ("tenantId", Some(r#""a b""#), "tenantId"),
    ("tenantId", Some(r#""a\tb""#), "tenantId"),
    ("tenantId", Some(r#""caf\u00e9""#), "tenantId"),
    ("tenantId", Some(r#""a\u0000b""#), "tenantId"),
    ("tenantId", Some(r#""a\r\nNats-Rollup: all""#), "tenantId"),
    ("serviceCallId", Some(r#""a\u0000b""#), "serviceCallId"),
    ("dueAt", Some(r#""tomorrow""#), "dueAt"),
    ("dueAt", Some(r#""2030-01-31""#), "dueAt"),
    ("dueAt", Some(r#""2030-01-31T12:00:00""#), "dueAt"),
    ("dueAt", Some(r#""2030-02-30T12:00:00Z""#), "dueAt"),
    ("dueAt", Some(r#""2030-01-31T25:00:00Z""#), "dueAt"),
    ("dueAt", Some(r#""1969-12-31T23:59:59Z""#), "dueAt"),
    ("dueAt", Some(r#""1893456000""#), "dueAt"),
    ("dueAt", Some(r#""+010000-01-01T00:00:00Z""#), "dueAt"),
    // Beyond the horizon of the service.
    ("dueAt", Some(r#""9000-01-01T00:00:00Z""#), "dueAt"),
];

const ENVELOPES: &[(&str, &str)] = &[
    (r#"{"type":"ScheduleTimer"}"#, "payload is required"),
    (r#"{"type":"ScheduleTimer","payload":null}"#, "payload is required"),
    (r#"{"type":"ScheduleTimer","payload":"PAYLOAD"}"#, "message"),
    (r#"{"type":"ScheduleTimer","payload":"text"}"#, "payload"),
    (r#"{"type":"ScheduleTimer","payload":[]}"#, "payload"),
    (r#"{"type":"ScheduleTimer","payload":{}}"#, "payload."),
    (r#"{"payload":PAYLOAD}"#, "type is required"),
    (r#"{"type":null,"payload":PAYLOAD}"#, "type is required"),
    (r#"{"type":7,"payload":PAYLOAD}"#, "type must be a string"),
    (r#"{"type":"","payload":PAYLOAD}"#, "type must be ScheduleTimer"),
    (r#"{"type":"scheduletimer","payload":PAYLOAD}"#, "type must be ScheduleTimer"),
    (r#"{"type":"CancelTimer","payload":PAYLOAD}"#, "type must be ScheduleTimer"),
    (r#"{"type":"DueTimeReached","payload":PAYLOAD}"#, "type must be ScheduleTimer"),
    (r#"{"type":"ScheduleTimer","tenantId":"other","payload":PAYLOAD}"#, "tenantId must be the same"),
    (r#"{"type":"ScheduleTimer","tenantId":7,"payload":PAYLOAD}"#, "tenantId must be a string"),
    (r#"{"type":"ScheduleTimer","id":7,"payload":PAYLOAD}"#, "id must be a string"),
    (r#"{"type":"ScheduleTimer","timestampMs":"now","payload":PAYLOAD}"#, "timestampMs must be a number"),
    (r#"{"type":"ScheduleTimer","correlationId":7,"payload":PAYLOAD}"#, "correlationId must be a string"),
    (r#"{"type":"ScheduleTimer","correlationId":"a\nb","payload":PAYLOAD}"#, "correlationId"),
    (r#"{"type":"ScheduleTimer","type":"ScheduleTimer","payload":PAYLOAD}"#, "type must not be given twice"),
    (r#"{"type":"ScheduleTimer","payload":PAYLOAD,"payload":PAYLOAD}"#, "payload must not be given twice"),
];

/// The bare payload with another value for one field, or without it.
fn payload_with(field: &str, value: Option<&str>) -> String {
    let usual = [("tenantId", r#""acme""#), ("serviceCallId", r#""never""#), ("dueAt", r#""2030-01-31T12:00:00Z""#)];
    let written = usual.into_iter().filter_map(|(name, usual)| {
        let value = if name == field { value? } else { usual };
        Some(format!("\"{name}\":{value}"))
    });
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}
