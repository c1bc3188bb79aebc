//! What a result is compared with: see "Matching" in sdks/conformance/README.md.

use serde_json::Value;

use crate::{Fault, mismatch};

pub fn matches(expected: &Value, actual: &Value) -> bool {
    compare(expected, actual, "result").is_ok()
}

pub fn compare(expected: &Value, actual: &Value, place: &str) -> Result<(), Fault> {
    let is_good = match expected {
        Value::String(any) if any == "$any" => !actual.is_null(),
        Value::Object(rule) if rule.keys().any(|name| name.starts_with('$')) => return follow(rule, actual, place),
        Value::Object(members) => {
            for (name, value) in members {
                compare(value, &actual[name], &format!("{place}.{name}"))?;
            }
            actual.is_object()
        }
        Value::Array(elements) => {
            for (number, value) in elements.iter().enumerate() {
                compare(value, &actual[number], &format!("{place}.{number}"))?;
            }
            actual.as_array().is_some_and(|actual| actual.len() == elements.len())
        }
        Value::Number(number) => actual.as_f64().is_some_and(|actual| Some(actual) == number.as_f64()),
        Value::String(text) => actual.as_str().is_some_and(|actual| actual == text || is_same_instant(text, actual)),
        other => other == actual,
    };
    if is_good { Ok(()) } else { mismatch(format!("{place} is {actual}, not {expected}")) }
}

fn follow(rule: &serde_json::Map<String, Value>, actual: &Value, place: &str) -> Result<(), Fault> {
    let length = actual.as_array().map(|elements| elements.len() as u64);
    for (name, value) in rule {
        let is_good = match (name.as_str(), length, value.as_u64()) {
            ("$json", ..) => return compare(value, &serde_json::from_str(actual.as_str().unwrap_or_default())?, place),
            ("$length", Some(length), Some(value)) => length == value,
            ("$min_length", Some(length), Some(value)) => length >= value,
            ("$max_length", Some(length), Some(value)) => length <= value,
            _ => false,
        };
        if !is_good {
            return mismatch(format!("{place} is {actual}, not {name} {value}"));
        }
    }
    Ok(())
}

fn is_same_instant(one: &str, other: &str) -> bool {
    let parse = |text: &str| chrono::DateTime::parse_from_rfc3339(text).ok();
    parse(one).is_some_and(|one| Some(one) == parse(other))
}
