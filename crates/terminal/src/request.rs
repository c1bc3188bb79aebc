//! What requests are made of, from arguments.

use std::{fs, io::Read};

use client::Json;
use domain::Timestamp;
use serde_json::{Map, Value};

use crate::Failure;

/// The most that is read from a file or from standard input for one payload; the service takes less.
const PAYLOAD_BYTES_MAX: u64 = 1024 * 1024;

/// JSON as it is, `@FILE`, or `-` for standard input.
pub fn payload(text: &str) -> Result<Json, Failure> {
    let text = match (text, text.strip_prefix('@')) {
        ("-", _) => read(std::io::stdin(), "standard input")?,
        (_, Some(file)) => {
            let opened = fs::File::open(file).map_err(|error| Failure::usage(format!("{file} cannot be read: {error}")))?;
            read(opened, file)?
        }
        (text, None) => text.to_owned(),
    };
    Json::text(text.trim().to_owned()).map_err(|error| Failure::usage(format!("the payload is not JSON: {error}")))
}

fn read(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = from.take(PAYLOAD_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("{name} cannot be read: {error}")))?;
    Ok(text)
}

/// `Name: value`.
pub fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("must be such as 'Name: value'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// `name=value`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be such as name=value")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// `FIRST..LONGEST`, or one of the two.
pub fn backoff(text: &str) -> Result<(Option<String>, Option<String>), String> {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (first, longest) = text.split_once("..").unwrap_or((text, ""));
    for end in [first, longest].into_iter().filter(|end| !end.is_empty()) {
        crate::connection::span(end)?;
    }
    Ok((some(first), some(longest)))
}

/// An instant in RFC 3339.
pub fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse("a time", text).map_err(|invalid| invalid.rule)
}

/// An object of these texts; those that are JSON numbers, `true`, `false` or `null` are that.
pub fn object(pairs: &[(String, String)]) -> Map<String, Value> {
    let value = |text: &str| match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Null)) => value,
        _ => Value::from(text),
    };
    pairs.iter().map(|(name, text)| (name.clone(), value(text))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read() {
        assert_eq!(header("X-A: b: c"), Ok(("X-A".to_owned(), "b: c".to_owned())));
        assert!(header("x").is_err() && pair("x").is_err());
        assert_eq!(backoff("30s..10m"), Ok((Some("30s".to_owned()), Some("10m".to_owned()))));
        assert_eq!(backoff("30s"), Ok((Some("30s".to_owned()), None)));
        assert_eq!(backoff("..10m"), Ok((None, Some("10m".to_owned()))));
        assert!(backoff("soon").is_err());
        let pairs = [("a", "1"), ("b", "x=y"), ("c", "true")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(Value::from(object(&pairs)), json!({"a": 1, "b": "x=y", "c": true}));
        assert_eq!(payload(" {\"n\": 1.10} ").unwrap().as_str(), "{\"n\": 1.10}");
        assert_eq!(payload("{").unwrap_err().exit, 2);
    }
}
