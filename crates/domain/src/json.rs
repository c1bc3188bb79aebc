use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{Invalid, limits};

/// JSON exactly as somebody wrote it: key order, `1.10`, `12345678901234567890` and escapes all survive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Checks that `text` is one JSON value, not deeper than the limit and not longer than `bytes_max`.
    pub fn parse(field: &str, text: &str, bytes_max: usize) -> Result<Self, Invalid> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        if text.len() > bytes_max {
            return Err(Invalid::new(field, format!("must not be longer than {bytes_max} bytes")));
        }
        if depth(text) > limits::JSON_DEPTH_MAX {
            return Err(Invalid::new(field, format!("must not be nested deeper than {}", limits::JSON_DEPTH_MAX)));
        }
        match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => Ok(Self(text.into())),
            Err(_) => Err(Invalid::new(field, "must be valid JSON")),
        }
    }

    /// Takes text that was checked when it was stored.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text without the blanks between tokens, for comparing what two requests meant.
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

pub(crate) fn without_blanks(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    let mut rest = text;
    // Whole pieces at once: what lies between two blanks, and strings with all that is in them.
    while let Some(at) = rest.find(['"', ' ', '\t', '\r', '\n']) {
        let end = if rest.as_bytes()[at] == b'"' { at + string_bytes(&rest[at..]) } else { at };
        compact.push_str(&rest[..end]);
        rest = rest[end..].trim_start_matches([' ', '\t', '\r', '\n']);
    }
    compact.push_str(rest);
    compact
}

/// How long the string is that `text` begins with, its quotes included.
fn string_bytes(text: &str) -> usize {
    let mut end = 1;
    while let Some(at) = text[end..].find(['"', '\\']) {
        end += at + 1;
        if text.as_bytes()[end - 1] == b'"' {
            return end;
        }
        // What is escaped ends nothing, and may be longer than a byte only where the text is no JSON.
        end += text[end..].chars().next().map_or(0, char::len_utf8);
    }
    text.len()
}

/// Reads the object that `field` must be. Complaints are serde's, but without positions: the caller sent a field, not a file.
pub(crate) fn parse_object<'a, T: serde::Deserialize<'a>>(field: &str, text: &'a str) -> Result<T, Invalid> {
    // Serde would take an array for the members of a struct in their order.
    if !text.trim_start().starts_with('{') {
        return Err(Invalid::new(field, "must be an object"));
    }
    serde_json::from_str(text).map_err(|error| {
        let text = error.to_string();
        Invalid::new(field, format!("is not understood: {}", text.split(" at line ").next().unwrap_or_default()))
    })
}

/// How deep arrays and objects are nested, counted without recursion so that hostile text cannot hurt.
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
    }

    #[test]
    fn blanks_between_tokens_mean_nothing() {
        let json = parse(r#"{ "a b" : [ 1, "\" x" ] }"#).unwrap();
        assert_eq!(json.without_blanks(), r#"{"a b":[1,"\" x"]}"#);
        for (text, compact) in [
            ("[ 1 ,\t2\r\n]", "[1,2]"),
            (r#"[ "\\" , " \\\" " ]"#, r#"["\\"," \\\" "]"#),
            (r#"{ "é ü" : "\u00e9 \n" }"#, r#"{"é ü":"\u00e9 \n"}"#),
            ("null", "null"),
            (r#""  ""#, r#""  ""#),
        ] {
            assert_eq!(parse(text).unwrap().without_blanks(), compact, "{text}");
        }
    }
}
