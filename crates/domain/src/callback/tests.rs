use ::url::Url;

use super::*;
use crate::{Span, TimerId};

fn complaint_about(json: &str) -> String {
    Callback::from_json(json).unwrap_err().to_string()
}

#[test]
fn an_http_callback_reads_back_as_it_was_written() {
    let json = r#"{"type":"http","url":"https://example.com/hook?a=b","headers":{"X-B":"1","X-A":"2"},"payload":{"b":1.10,"a":12345678901234567890},"timeout":"5s","protocol":"timer"}"#;
    let callback = Callback::from_json(json).unwrap();
    assert_eq!(callback.to_json(), json);
}

#[test]
fn a_nats_callback_reads_back_as_it_was_written() {
    let json = r#"{"type":"nats","topic":"a.b-c_d","key":"k 1","headers":{"X":"1"},"payload":null,"jetstream":true}"#;
    assert_eq!(Callback::from_json(json).unwrap().to_json(), json);
}

#[test]
fn what_json_must_escape_reads_back_as_it_was_written() {
    let json = r#"{"type":"nats","topic":"a\\b.\"c\"","key":"\"\\","headers":{"X":"a\tb\"\\"},"payload":[ "\u0000" ],"jetstream":false}"#;
    let callback = Callback::from_json(json).unwrap();
    assert_eq!(callback.to_json(), json);
    assert_eq!(serde_json::to_string(&callback).unwrap(), json);
}

#[test]
fn an_event_has_nothing_but_its_type_and_is_tried_for_ever() {
    let json = r#"{"type":"event"}"#;
    assert_eq!(Callback::from_json(json).unwrap().to_json(), json);
    assert_eq!(Callback::EVENT.retries().map(|policy| policy.max_retries), Some(u32::MAX));
    for field in ["url", "topic", "payload", "headers"] {
        let value = if field == "headers" { "{}" } else { "\"a\"" };
        let complaint = complaint_about(&format!(r#"{{"type":"event","{field}":{value}}}"#));
        assert_eq!(complaint, format!("callback.{field} does not belong to a callback of type event"));
    }
}

#[test]
fn a_payload_of_null_is_not_a_missing_payload() {
    let with = |payload: &str| Callback::from_json(&format!(r#"{{"type":"http","url":"http://a/"{payload}}}"#)).unwrap();
    assert_eq!(with(r#","payload":null"#).payload().map(JsonText::as_str), Some("null"));
    assert_eq!(with("").payload(), None);
}

#[test]
fn null_is_the_same_as_nothing_except_for_a_payload() {
    let nulls = r#"{"type":"http","url":"http://a/","topic":null,"headers":null,"timeout":null}"#;
    assert_eq!(Callback::from_json(nulls), Callback::from_json(r#"{"type":"http","url":"http://a/"}"#));
    assert_eq!(complaint_about(r#"{"type":"http","url":null}"#), "callback.url is required");
    assert_eq!(
        complaint_about(r#"{"type":"event","payload":null}"#),
        "callback.payload does not belong to a callback of type event"
    );
    assert_eq!(complaint_about(r#"{"type":"http","url":null,"url":"http://a/"}"#), "callback.url must not be given twice");
}

#[test]
fn of_several_fields_that_do_not_belong_the_first_of_the_table_is_named() {
    for (kind, field) in [("event", "url"), ("nats", "url"), ("http", "topic")] {
        let all = r#""payload":1,"headers":{},"jetstream":true,"key":"k","topic":"a","protocol":"timer","timeout":"5s","url":"http://a/""#;
        let complaint = complaint_about(&format!(r#"{{{all},"type":"{kind}"}}"#));
        assert_eq!(complaint, format!("callback.{field} does not belong to a callback of type {kind}"));
    }
}

#[test]
fn names_may_be_written_with_escapes() {
    let callback = Callback::from_json(r#"{"\u0074ype":"http","ur\u006c":"http://a/"}"#).unwrap();
    assert_eq!(callback, Callback::from_json(r#"{"type":"http","url":"http://a/"}"#).unwrap());
}

#[test]
fn what_is_not_given_has_its_default() {
    let Endpoint::Http(http) = Callback::from_json(r#"{"type":"http","url":"http://a"}"#).unwrap().endpoint else { panic!() };
    assert_eq!((http.timeout, http.protocol), (Span::from_secs(30), Protocol::Webhook));
    let Endpoint::Nats(nats) = Callback::from_json(r#"{"type":"nats","topic":"a"}"#).unwrap().endpoint else { panic!() };
    assert!(!nats.jetstream);
}

#[test]
fn bad_callbacks_are_refused_with_field_and_rule() {
    for (json, start) in [
        ("[]", "callback must be an object"),
        (r#""http://a""#, "callback must be an object"),
        ("{}", "callback.type is required"),
        (r#"{"type":"smtp"}"#, format!("callback.type must be {}", KindSet::REQUESTABLE).as_str()),
        (r#"{"type":7}"#, "callback.type must be a string"),
        (r#"{"type":"http"}"#, "callback.url is required"),
        (r#"{"type":"http","url":["http://a"]}"#, "callback.url must be a string"),
        (r#"{"type":"http","url":"http://a","timeout":30}"#, "callback.timeout must be a string"),
        (r#"{"type":"http","url":"http://a","protocol":true}"#, "callback.protocol must be a string"),
        (r#"{"type":"nats","topic":7}"#, "callback.topic must be a string"),
        (r#"{"type":"nats","topic":"a","jetstream":"yes"}"#, "callback.jetstream must be true or false"),
        (r#"{"type":"http","url":"http://a","url":"http://b"}"#, "callback.url must not be given twice"),
        (r#"{"type":"nats","topic":"a","key":7}"#, "callback.key must be a string"),
        (r#"{"type":"http","url":"http://a","uri":"x"}"#, "callback.'uri' is not a known field"),
        (r#"{"type":"http","url":"http://a","topic":"x"}"#, "callback.topic does not belong to a callback of type http"),
        (r#"{"type":"nats","topic":"a","timeout":"5s"}"#, "callback.timeout does not belong to a callback of type nats"),
        (r#"{"type":"http","url":"ftp://a"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"/relative"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"http://"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"http:///127.0.0.1/x"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"http:127.0.0.1/x"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"http:/127.0.0.1/x"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"http:\\\\127.0.0.1/x"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"http://\\127.0.0.1/x"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"ht\ntp://a"}"#, "callback.url must not contain tabs or line breaks"),
        (r#"{"type":"http","url":"http://\t/127.0.0.1/x"}"#, "callback.url must not contain tabs or line breaks"),
        (r#"{"type":"http","url":"http://\n/127.0.0.1/x"}"#, "callback.url must not contain tabs or line breaks"),
        (r#"{"type":"http","url":"http://\r\\127.0.0.1/x"}"#, "callback.url must not contain tabs or line breaks"),
        (r#"{"type":"http","url":"http://a/x\n"}"#, "callback.url must not contain tabs or line breaks"),
        (r#"{"type":"http","url":"http://a:0/x"}"#, "callback.url must have a port from 1 to 65535, or none"),
        (r#"{"type":"http","url":"http://[::1]:00/x"}"#, "callback.url must have a port from 1 to 65535, or none"),
        (r#"{"type":"http","url":"http://a:65536/x"}"#, "callback.url must be a valid http or https URL"),
        (r#"{"type":"http","url":"http://u:p@a"}"#, "callback.url must not contain credentials"),
        (r#"{"type":"http","url":"http://a","headers":{"a":1}}"#, "callback.headers.a must be a string"),
        (r#"{"type":"http","url":"http://a","headers":[]}"#, "callback.headers must be an object of strings"),
        (r#"{"type":"http","url":"http://a","headers":{"Host":"b"}}"#, "callback.headers.Host is set by the service"),
        (r#"{"type":"http","url":"http://a","timeout":"99ms"}"#, "callback.timeout must lie between 100ms and 5m"),
        (r#"{"type":"http","url":"http://a","timeout":"6m"}"#, "callback.timeout must lie between"),
        (r#"{"type":"http","url":"http://a","timeout":"soon"}"#, "callback.timeout must be a duration"),
        (r#"{"type":"http","url":"http://a","protocol":"soap"}"#, "callback.protocol must be webhook or timer"),
        (r#"{"type":"nats"}"#, "callback.topic is required"),
        (r#"{"type":"nats","topic":""}"#, "callback.topic must have 1 to 255 characters"),
        (r#"{"type":"nats","topic":"a b"}"#, "callback.topic must be a NATS subject"),
        (r#"{"type":"nats","topic":"a.*"}"#, "callback.topic must be a NATS subject"),
        (r#"{"type":"nats","topic":"a..b"}"#, "callback.topic must be a NATS subject"),
        (r#"{"type":"nats","topic":"a.>"}"#, "callback.topic must be a NATS subject"),
        (r#"{"type":"nats","topic":".a"}"#, "callback.topic must be a NATS subject"),
        (r#"{"type":"nats","topic":"$JS.API"}"#, "callback.topic must not start with $ or _INBOX"),
        (r#"{"type":"nats","topic":"_INBOX.a"}"#, "callback.topic must not start with $ or _INBOX"),
        (r#"{"type":"nats","topic":"a","headers":{"Nats-Rollup":"all"}}"#, "callback.headers.Nats-Rollup must not be given"),
        (r#"{"type":"nats","topic":"a","key":""}"#, "callback.key must be 1 to 255 printable ASCII characters"),
    ] {
        let complaint = complaint_about(json);
        assert!(complaint.starts_with(start), "{json}: {complaint}");
    }
    let long = format!(r#"{{"type":"http","url":"http://a/{}"}}"#, "x".repeat(2048));
    assert_eq!(complaint_about(&long), "callback.url must not be longer than 2048 characters");
}

#[test]
fn the_id_becomes_the_last_segment_of_the_path() {
    let id = TimerId::parse("id", "0190163d-8694-739b-aea5-966c26f8ad91").unwrap();
    for (url, expected) in [
        ("http://a", "http://a/0190163d-8694-739b-aea5-966c26f8ad91"),
        ("http://a/hook/", "http://a/hook/0190163d-8694-739b-aea5-966c26f8ad91"),
        ("http://a/hook?x=1#f", "http://a/hook/0190163d-8694-739b-aea5-966c26f8ad91?x=1"),
    ] {
        assert_eq!(CallbackUrl::parse(url).unwrap().with_id(id).as_str(), expected);
    }
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    for (url, origin) in [
        ("http://a", "http://a"),
        ("HTTP://A.Example:80/x/y?z=http://b", "http://a.example"),
        ("https://a:443?x", "https://a"),
        ("https://a:8443/", "https://a:8443"),
        ("http://127.1:9/", "http://127.0.0.1:9"),
        ("http://[::0001]:80/", "http://[::1]"),
        ("http://bücher.example/#f", "http://xn--bcher-kva.example"),
    ] {
        let url = CallbackUrl::parse(url).unwrap();
        assert_eq!(url.origin(), origin);
        assert_eq!(Url::parse(url.as_str()).unwrap().origin().ascii_serialization(), origin);
    }
}

#[test]
fn an_address_falls_into_its_parts() {
    for (text, origin, host, port, without_query) in [
        ("http://a.example", "http://a.example", "a.example", 80, "http://a.example/"),
        ("https://A.example:443/x?y=:/z", "https://a.example", "a.example", 443, "https://a.example/x"),
        ("http://a.example:8080/b:c//d", "http://a.example:8080", "a.example", 8080, "http://a.example:8080/b:c//d"),
        ("http://0x7f.1/", "http://127.0.0.1", "127.0.0.1", 80, "http://127.0.0.1/"),
        ("https://[::1]/?a", "https://[::1]", "[::1]", 443, "https://[::1]/"),
        ("http://[2001:DB8::0]:81?q", "http://[2001:db8::]:81", "[2001:db8::]", 81, "http://[2001:db8::]:81/"),
    ] {
        let url = CallbackUrl::parse(text).unwrap();
        let parsed = Url::parse(url.as_str()).unwrap();
        assert_eq!((url.origin(), url.host(), url.port(), url.without_query()), (origin, host, port, without_query), "{text}");
        assert_eq!(url.origin(), parsed.origin().ascii_serialization(), "{text}");
        assert_eq!((Some(url.host()), Some(url.port())), (parsed.host_str(), parsed.port_or_known_default()), "{text}");
    }
}

#[test]
fn stores_leave_out_what_has_its_default_and_clients_see_it() {
    const HTTP: &str = r#"{"type":"http","url":"http://a/""#;
    const NATS: &str = r#"{"type":"nats","topic":"a.b""#;
    for (kind, given, stored, shown) in [
        (HTTP, "", "", r#","timeout":"30s","protocol":"webhook""#),
        (HTTP, r#","timeout":"30s""#, "", r#","timeout":"30s","protocol":"webhook""#),
        (HTTP, r#","timeout":"30000ms","protocol":"webhook""#, "", r#","timeout":"30s","protocol":"webhook""#),
        (HTTP, r#","timeout":"31s""#, r#","timeout":"31s""#, r#","timeout":"31s","protocol":"webhook""#),
        (HTTP, r#","protocol":"timer""#, r#","protocol":"timer""#, r#","timeout":"30s","protocol":"timer""#),
        (
            HTTP,
            r#","timeout":"5s","protocol":"timer""#,
            r#","timeout":"5s","protocol":"timer""#,
            r#","timeout":"5s","protocol":"timer""#,
        ),
        (HTTP, r#","payload":null"#, r#","payload":null"#, r#","payload":null,"timeout":"30s","protocol":"webhook""#),
        (NATS, "", "", r#","jetstream":false"#),
        (NATS, r#","key":"k","jetstream":false"#, r#","key":"k""#, r#","key":"k","jetstream":false"#),
        (NATS, r#","jetstream":true"#, r#","jetstream":true"#, r#","jetstream":true"#),
        (r#"{"type":"event""#, "", "", ""),
    ] {
        let text = |rest: &str| format!("{kind}{rest}}}");
        let callback = Callback::from_stored(&text(given)).unwrap();
        assert_eq!((callback.to_stored(), callback.to_json()), (text(stored), text(shown)), "{given}");
        // What earlier versions stored is what clients see.
        for written in [stored, shown] {
            assert_eq!(Callback::from_stored(&text(written)).as_ref(), Ok(&callback), "{given}");
        }
    }
}

#[test]
fn what_was_stored_reads_back_without_being_checked_again() {
    for text in [
        r#"{"type":"http","url":"http://a.example/x?y","headers":{"a":"b\\c"},"payload":{ "n" : 1.10 },"timeout":"7s","protocol":"timer"}"#,
        r#"{"type":"http","url":"https://[::1]:8443/","payload":null}"#,
        r#"{"type":"nats","topic":"a.b","key":"k","payload":[1],"jetstream":true}"#,
        r#"{"type":"event"}"#,
    ] {
        let callback = Callback::from_json(text).unwrap();
        assert_eq!(Callback::from_stored(&callback.to_stored()).as_ref(), Ok(&callback), "{text}");
    }
    for text in ["", "{", "[]", r#"{"type":"smoke"}"#, r#"{"type":"http"}"#, r#"{"type":"http","url":1}"#] {
        assert!(Callback::from_stored(text).is_err(), "{text}");
    }
}

#[test]
fn an_address_is_read_from_the_beginning_of_the_stored_text() {
    let payload = "x".repeat(5_000);
    for (json, expected) in [
        (format!(r#"{{"type":"http","url":"http://Shop.example/hooks?a=1","payload":"{payload}"}}"#), Some("shop.example:80")),
        (r#"{"type":"http","url":"https://a.example"}"#.to_owned(), Some("a.example:443")),
        (r#"{"type":"http","url":"http://[::1]:9/x"}"#.to_owned(), Some("[::1]:9")),
        (format!(r#"{{"type":"nats","topic":"orders.a","key":"k","payload":"{payload}"}}"#), Some("orders.a")),
        (r#"{"type":"event"}"#.to_owned(), None),
    ] {
        let callback = if expected.is_none() { Callback::EVENT } else { Callback::from_json(&json).unwrap() };
        let stored = callback.to_stored();
        let beginning = stored.get(..ADDRESS_BYTES).unwrap_or(&stored);
        assert_eq!(callback.address().map(|address| address.to_string()).as_deref(), expected);
        assert!(
            callback.address().is_none_or(|address| address.is_written(expected.unwrap()) && !address.is_written("a.example:8"))
        );
        for text in [stored.as_str(), beginning] {
            assert_eq!(Callback::address_in(text).as_deref(), expected, "{json}");
        }
    }
    for damaged in ["", "{", r#"{"type":"http","url":"http://a"#, r#"{"type":"http","url":7}"#] {
        assert_eq!(Callback::address_in(damaged), None, "{damaged}");
    }
}
