//! Values come back as they were written: times, JSON, and texts that databases like to fold.

use std::collections::BTreeSet;

use domain::{Callback, Namespace, Next, RequestedTime, Span, Timestamp};
use store::{Created, Filter};

use crate::{Fixture, NOW, Stage, ahead, micros, secs, stage::entry_at, timer};

/// Texts that are distinct to us, and that collations, escapes, patterns or normal forms could take for one another.
fn nasty_texts() -> Vec<String> {
    let texts = [
        "a",
        "A",
        " a",
        "a ",
        "a  ",
        "é",
        "e\u{301}",
        "É",
        "ß",
        "ss",
        "ẞ",
        "ı",
        "i",
        "I",
        "İ",
        "ﬁ",
        "fi",
        "😀",
        "👩‍👩‍👧",
        "👩",
        "'",
        "''",
        "\"",
        "\\",
        "\\\\",
        "\\'",
        "%",
        "_",
        "a%",
        "a_",
        "?",
        "$1",
        ":x",
        ";",
        "--",
        "'; DROP TABLE timers; --",
        "{}",
        "null",
        "NULL",
        "0",
        "00",
        "1e1",
        "10",
        "日本語",
        "שלום",
        "\u{200b}a",
        "\u{fe0f}",
        "\u{fffd}",
        "\u{feff}a",
    ];
    let mut texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    texts.extend(["x".repeat(255), "X".repeat(255), "😀".repeat(255), "é".repeat(255), "e".repeat(254) + "\u{301}"]);
    texts
}

pub async fn keys_stay_distinct_and_come_back_as_written(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let texts = nasty_texts();
    // `create_new` checks that none of them is taken for an existing id.
    let timers = stage.create_new(texts.iter().map(|text| timer("http://a.example/").key(text)).collect()).await;
    for (text, timer) in texts.iter().zip(timers) {
        let read = stage.get(timer.id()).await;
        assert_eq!(read.definition.key.as_ref().map(|key| key.as_str()), Some(text.as_str()));
        assert_eq!(read, timer);
    }
}

pub async fn namespaces_stay_distinct_and_are_filtered_exactly(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let texts = nasty_texts();
    stage.create_new(texts.iter().map(|text| timer("http://a.example/").namespace(text).key("k")).collect()).await;
    let all = stage.store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap();
    assert_eq!(all, texts.len() as u64);
    for text in texts {
        let namespace = Namespace::parse(&text).unwrap();
        let filter = Filter { namespaces: Some(namespace.clone()).into_iter().collect(), ..Filter::default() };
        assert_eq!(stage.store.count(&filter, store::SEARCH_BUDGET).await.unwrap(), 1, "{text}");
        let query = store::ListQuery {
            filter,
            sort: store::Sort::CreatedAt,
            order: store::Order::Descending,
            limit: 10,
            ..store::ListQuery::default()
        };
        let page = stage.store.list(&query).await.unwrap();
        assert_eq!(page.timers.iter().map(|summary| &summary.namespace).collect::<Vec<_>>(), [&namespace]);
    }
}

pub async fn correlation_ids_come_back_as_written(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let texts = nasty_texts();
    let timers = stage.create_new(texts.iter().map(|text| timer("http://a.example/").correlation_id(text)).collect()).await;
    for (text, timer) in texts.iter().zip(timers) {
        let read = stage.get(timer.id()).await;
        assert_eq!(read.definition.correlation_id.as_ref().map(|id| id.as_str()), Some(text.as_str()));
    }
}

pub async fn errors_come_back_as_written(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut texts = nasty_texts();
    texts.extend([String::new(), "line\r\nline\ttab".to_owned(), "é".repeat(domain::limits::LAST_ERROR_CHARS_MAX)]);
    for error in texts {
        let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
        stage.settle(&claimed, Next::Pending { at: ahead(secs(60)), attempt: 1, error: Some(error.clone()) }).await;
        let retried = stage.get(claimed.entry.id).await;
        assert_eq!(retried.last_error.as_ref(), Some(&error));
        let claimed = stage.claim(&[entry_at(&retried, ahead(secs(60)))]).await.remove(0);
        stage.settle(&claimed, Next::Failed { at: NOW, error: error.clone() }).await;
        assert_eq!(stage.get(claimed.entry.id).await.last_error, Some(error));
    }
}

/// JSON that parsing and printing would change.
fn verbatim_json() -> Vec<String> {
    let texts = [
        "1.10",
        "12345678901234567890",
        "123456789012345678901234567890.5",
        "1e400",
        "-0",
        "0.1e-7",
        "null",
        "true",
        "\"\"",
        "[]",
        "{}",
        r#"{"b":1,"a":2}"#,
        r#"{"a":1,"a":2}"#,
        r#"{ "a" : [ 1 , 2 ] }"#,
        "{\n\t\"a\": 1\r\n}",
        r#""\u00e9 é e\u0301 \/ \\ \" \n""#,
        r#""\u0000""#,
        r#""\ud83d\ude00 😀""#,
        r#"{"'":"%_$1?"}"#,
        r#"{"":""}"#,
    ];
    texts.into_iter().map(str::to_owned).collect()
}

pub async fn payloads_come_back_to_the_byte(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for json in verbatim_json() {
        let created = stage.create(timer("http://a.example/").payload(&json)).await;
        let read = stage.get(created.id()).await;
        assert_eq!(read.definition.callback.payload().map(|payload| payload.as_str()), Some(json.as_str()));
        let claimed = stage.claim_one(&created).await.timer.unwrap();
        assert_eq!(claimed.definition, read.definition);
    }
}

/// Stores may leave a default out: clients must not be able to tell, and a request that is sent again must be recognised.
pub async fn callbacks_come_back_with_and_without_what_has_its_default(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let http = [
        "",
        r#","timeout":"30s""#,
        r#","protocol":"webhook""#,
        r#","timeout":"30s","protocol":"webhook""#,
        r#","timeout":"29s""#,
        r#","protocol":"timer""#,
        r#","headers":{"X-A":"1"},"payload":{"n":1.10},"timeout":"5m","protocol":"timer""#,
    ];
    let nats = ["", r#","jetstream":false"#, r#","jetstream":true"#];
    let http = http.map(|rest| format!(r#"{{"type":"http","url":"http://a.example/x"{rest}}}"#));
    let nats = nats.map(|rest| format!(r#"{{"type":"nats","topic":"orders.late"{rest}}}"#));
    for (number, json) in http.iter().chain(&nats).enumerate() {
        let draft = timer("http://a.example/").calling(Callback::from_json(json).unwrap());
        for draft in [draft.clone(), draft.key(&format!("k-{number}"))] {
            let new = draft.clone().build();
            let created = stage.create(draft.clone()).await;
            assert_eq!(created.definition, new.definition, "{json}");
            assert_eq!(stage.get(created.id()).await, created, "{json}");
            assert_eq!(stage.create_all(vec![draft]).await, [Created::Existing(created.clone())], "{json}");
            let claimed = stage.claim_one(&created).await.timer.unwrap();
            assert_eq!(claimed.definition, new.definition, "{json}");
        }
    }
}

pub async fn metadata_comes_back_to_the_byte(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut texts = verbatim_json();
    texts.extend(nasty_texts().iter().filter(|text| !text.contains(['"', '\\'])).map(|text| format!(r#"{{"{text}":"{text}"}}"#)));
    for json in texts {
        let created = stage.create(timer("http://a.example/").metadata(&json)).await;
        let read = stage.get(created.id()).await;
        assert_eq!(read.definition.metadata.as_ref().map(|metadata| metadata.as_str()), Some(json.as_str()));
    }
}

pub async fn a_null_payload_is_not_the_same_as_none(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let null = stage.create(timer("http://a.example/").payload("null").metadata("null")).await;
    let none = stage.create(timer("http://a.example/")).await;
    let null = stage.get(null.id()).await.definition;
    assert_eq!(null.callback.payload().map(|json| json.as_str()), Some("null"));
    assert_eq!(null.metadata.as_ref().map(|json| json.as_str()), Some("null"));
    let none = stage.get(none.id()).await.definition;
    assert_eq!((none.callback.payload(), none.metadata), (None, None));
}

pub async fn the_largest_payload_and_metadata_come_back(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let json = |bytes: usize| format!("\"{}\"", "é".repeat(bytes / 2 - 1));
    let (payload, metadata) = (json(domain::limits::PAYLOAD_BYTES_MAX), json(domain::limits::METADATA_BYTES_MAX));
    assert_eq!(payload.len(), domain::limits::PAYLOAD_BYTES_MAX);
    let created = stage.create(timer("http://a.example/").payload(&payload).metadata(&metadata)).await;
    assert_eq!(stage.get(created.id()).await, created);
    let claimed = stage.claim_one(&created).await.timer.unwrap();
    assert_eq!(claimed.definition.callback.payload().map(|json| json.as_str()), Some(payload.as_str()));
    assert_eq!(claimed.definition.metadata.as_ref().map(|json| json.as_str()), Some(metadata.as_str()));
}

pub async fn times_come_back_to_the_microsecond(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let times = [
        Timestamp::from_micros(0),
        Timestamp::from_micros(1),
        Timestamp::from_micros(59_999_999),
        ahead(micros(1)),
        ahead(micros(999_999)),
        Timestamp::from_micros(i64::from(u32::MAX) * 1_000_000 + 1),
        Timestamp::MAX.saturating_sub(micros(1)),
        Timestamp::MAX,
    ];
    let mut ids = BTreeSet::new();
    for at in times {
        let created = stage.create(timer("http://a.example/").created_at(at).due_at(at)).await;
        assert_eq!((created.execute_at, created.created_at, created.updated_at), (at, at, at));
        assert_eq!(created.definition.asked, RequestedTime::At(at));
        assert_eq!(stage.get(created.id()).await, created);
        let claimed = stage.claim_one(&created).await;
        assert_eq!(claimed.entry.at, at);
        stage.settle(&claimed, Next::Completed { at }).await;
        let done = stage.get(created.id()).await;
        assert_eq!((done.executed_at, done.updated_at, done.execute_at), (Some(at), at, at));
        assert!(ids.insert(created.id()));
    }
}

pub async fn what_was_asked_comes_back_as_asked(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for delay in [micros(1), secs(90), Span::from_micros_clamped(86_400_000_000 * 365 * 100)] {
        let created = stage.create(timer("http://a.example/").after(delay)).await;
        let read = stage.get(created.id()).await;
        assert_eq!((read.definition.asked, read.execute_at), (RequestedTime::After(delay), NOW.saturating_add(delay)));
    }
}
