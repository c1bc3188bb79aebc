use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;

use crate::{Invalid, limits};

/// JSON exactly as the client wrote it: key order, `1.10`, `12345678901234567890` and escapes all survive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Checks that `text` is one JSON value, not deeper than the limit and not longer than `bytes_max`.
    pub fn parse(field: &str, text: &str, bytes_max: usize) -> Result<Self, Invalid> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        check_size(field, text, bytes_max)?;
        match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => Ok(Self(text.into())),
            Err(_) => Err(Invalid::new(field, "must be valid JSON")),
        }
    }

    /// The same for a text that was checked to be one JSON value when a larger one was parsed.
    pub fn of_checked(field: &str, text: &str, bytes_max: usize) -> Result<Self, Invalid> {
        check_size(field, text, bytes_max)?;
        Ok(Self(text.into()))
    }

    /// Takes text that was checked when it was stored.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text without whitespace between tokens, for comparing what two requests meant.
    pub fn without_blanks(&self) -> String {
        without_blanks(&self.0)
    }
}

impl serde::Serialize for JsonText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The text of a JSON string, if it is one. Without escapes it is borrowed.
pub fn string_in(raw: &RawValue) -> Option<Cow<'_, str>> {
    string_in_checked(raw.get())
}

/// The same for a text that was checked to be JSON.
pub(crate) fn string_in_checked(json: &str) -> Option<Cow<'_, str>> {
    let quoted = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', quoted.as_bytes()).is_none() {
        return Some(Cow::Borrowed(quoted));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// JSON text without the blanks between its tokens. Whole strings and whatever lies between two blanks are taken over at once.
pub(crate) fn without_blanks(mut text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    while !text.is_empty() {
        let bytes = text.as_bytes();
        let plain = bytes.iter().position(|byte| *byte == b'"' || byte.is_ascii_whitespace()).unwrap_or(bytes.len());
        let end = if bytes.get(plain) == Some(&b'"') { plain + string_bytes(&bytes[plain..]) } else { plain };
        let (kept, rest) = text.split_at(end);
        compact.push_str(kept);
        text = rest.trim_ascii_start();
    }
    compact
}

/// The length of the string literal with which `bytes` begins, its quotes included.
pub(crate) fn string_bytes(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn check_size(field: &str, text: &str, bytes_max: usize) -> Result<(), Invalid> {
    if text.len() > bytes_max {
        return Err(Invalid::new(field, format!("must not be longer than {bytes_max} bytes")));
    }
    // A text with so few opening brackets cannot be nested deeper, and needs no closer look.
    let opens_many = memchr::memchr2_iter(b'[', b'{', text.as_bytes()).nth(limits::JSON_DEPTH_MAX).is_some();
    if opens_many && depth(text) > limits::JSON_DEPTH_MAX {
        return Err(Invalid::new(field, format!("must not be nested deeper than {}", limits::JSON_DEPTH_MAX)));
    }
    Ok(())
}

/// How deep arrays and objects are nested, counted without recursion so that hostile text cannot exhaust the stack.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest): (usize, usize) = (0, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<JsonText, Invalid> {
        JsonText::parse("payload", text, 1000)
    }

    #[test]
    fn text_survives_to_the_byte() {
        for text in [
            r#"{"b":1,"a":2}"#,
            "1.10",
            "12345678901234567890",
            "1e400",
            "-0",
            r#"{"a":1,"a":2}"#,
            r#""\u00e9 é e\u0301""#,
            r#""\u0000""#,
            "null",
            r#"[ 1 , 2 ]"#,
        ] {
            let json = parse(text).unwrap();
            assert_eq!(json.as_str(), text);
            assert_eq!(serde_json::to_string(&json).unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", "{", "{a:1}", "1 2", "'a'", "\"\u{1}\"", "NaN", "01", "[1,]"] {
            assert_eq!(parse(text).unwrap_err().to_string(), "payload must be valid JSON", "{text}");
        }
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&nested(64)).is_ok());
        assert_eq!(parse(&nested(65)).unwrap_err().to_string(), "payload must not be nested deeper than 64");
        assert_eq!(parse(&"1".repeat(1001)).unwrap_err().to_string(), "payload must not be longer than 1000 bytes");
        assert!(parse(r#""[[[[ \" ]]]]""#).is_ok());
        assert!(parse(&format!("[{}]", vec!["[]"; 100].join(","))).is_ok());
        assert!(parse(&format!(r#""{}""#, "[".repeat(100))).is_ok());
    }

    #[test]
    fn the_text_of_a_string_is_what_it_means() {
        for (json, text) in [
            (r#""""#, Some("")),
            (r#""a é""#, Some("a é")),
            (r#""\"\u00e9\\""#, Some("\"é\\")),
            (r#""\ud800""#, None),
            ("7", None),
            ("null", None),
            (r#"["a"]"#, None),
        ] {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(string_in(raw).as_deref(), text, "{json}");
        }
    }

    #[test]
    fn blanks_between_tokens_mean_nothing() {
        for (text, compact) in [
            (r#"{ "a b" : [ 1, "\" x" ] }"#, r#"{"a b":[1,"\" x"]}"#),
            ("[ ]", "[]"),
            (r#"[ "" , "\\" , " " ]"#, r#"["","\\"," "]"#),
            ("{\"é\u{a0}\":\r\n\t\"\u{2003}\\u00e9 \" }", "{\"é\u{a0}\":\"\u{2003}\\u00e9 \"}"),
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            ("1", "1"),
        ] {
            assert_eq!(parse(text).unwrap().without_blanks(), compact, "{text}");
        }
    }
}
