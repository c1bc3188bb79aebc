//! Properties of what is read from clients, over random texts: any text, and texts that are nearly right.

mod checks;

use proptest::{collection::vec, prelude::*, sample::select};

use domain::Span;

const MICROS: [(&str, i64); 8] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

/// Made of what durations are made of.
fn nearly_a_duration() -> impl Strategy<Value = String> {
    let part = select(vec!["P", "T", "1", "30", "0.5", ".", "999999999999", "s", "ms", "h", "M", "H", "D", "W", "-", " ", "٣"]);
    vec(part, 0..8).prop_map(|parts| parts.concat())
}

/// Made of what callbacks are made of.
fn nearly_a_callback() -> impl Strategy<Value = String> {
    let field = select(vec![
        r#""type":"http""#,
        r#""type":"nats""#,
        r#""type":"event""#,
        r#""url":"http://127.0.0.1:9/a?b#c""#,
        r#""url":"https://EXAMPLE.com:443/%41/../x""#,
        r#""url":"http://[::1]/""#,
        r#""topic":"a.b""#,
        r#""topic":"a.*""#,
        r#""key":"k""#,
        r#""headers":{}"#,
        r#""headers":{"X-A":"b","x-a":"c"}"#,
        r#""payload":null"#,
        r#""payload":{"a":[1.0,1e5,"\u00e9\n"],"a":2}"#,
        r#""timeout":"90s""#,
        r#""timeout":"PT1.5S""#,
        r#""protocol":"timer""#,
        r#""jetstream":true"#,
        r#""unknown":1"#,
    ]);
    vec(field, 0..7).prop_map(|fields| format!("{{{}}}", fields.join(",")))
}

/// Made of what JSON texts are made of.
fn nearly_json() -> impl Strategy<Value = String> {
    let part = select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\"a\"",
        "\"b\"",
        "\"\\u0061\"",
        "\"\\\"\"",
        "1.10",
        "null",
        "true",
        "\"",
        "\\",
        "é",
    ]);
    vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// Any value, nested, with blanks between its tokens.
fn json() -> impl Strategy<Value = String> {
    let scalar =
        select(vec!["null", "true", "\"a\"", "\"0\"", "\"\\u0061\"", "\"\"", "\"{[\\\",\"", "7"]).prop_map(str::to_owned);
    scalar.prop_recursive(4, 24, 4, |inner| {
        let name = select(vec!["\"a\"", "\"b\"", "\"0\"", "\"\\u0061\"", "\"\""]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[ {} ]", items.join(" , "))),
            vec((name, inner), 0..4).prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(name, value)| format!("{name} : {value}")).collect();
                format!("{{ {} }}", members.join(","))
            }),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    vec(select(vec!["a", "b", "0", "1", "00", "\u{e9}"]), 1..5).prop_map(|names| names.join("."))
}

proptest! {
    #[test]
    fn a_path_leads_where_it_leads_in_the_parsed_value(json in json(), path in path(), text in select(vec!["a", "0", "", "null", "true"])) {
        checks::metadata_path::check(&json, &path, text);
    }

    #[test]
    fn a_path_survives_what_is_nearly_json(json in nearly_json(), path in path(), any in any::<String>()) {
        checks::metadata_path::check(&json, &path, "a");
        checks::metadata_path::check(&any, &path, "a");
        checks::metadata_path::check(&json, &any, &any);
    }

    #[test]
    fn any_text_is_read_as_a_duration_or_refused(text in any::<String>()) {
        checks::duration::check(&text);
    }

    #[test]
    fn what_is_nearly_a_duration_is_read_or_refused(text in nearly_a_duration()) {
        checks::duration::check(&text);
    }

    #[test]
    fn the_terms_of_a_duration_add_up(terms in vec((0..100_000_u32, select(&MICROS)), 1..6)) {
        let text: String = terms.iter().map(|(number, (unit, _))| format!("{number}{unit}")).collect();
        let sum: i64 = terms.iter().map(|(number, (_, micros))| i64::from(*number) * micros).sum();
        prop_assert_eq!(Span::parse("delay", &text).map(Span::as_micros), Ok(sum), "{}", text);
    }

    #[test]
    fn every_duration_is_written_so_that_it_reads_back(micros in 0..=i64::MAX) {
        let span = Span::from_micros_clamped(micros);
        prop_assert_eq!(Span::parse("delay", &span.to_string()), Ok(span));
    }

    #[test]
    fn any_text_is_read_as_a_callback_or_refused(text in any::<String>()) {
        checks::callback::check(&text);
    }

    #[test]
    fn what_is_nearly_a_callback_is_read_or_refused(text in nearly_a_callback()) {
        checks::callback::check(&text);
    }
}
