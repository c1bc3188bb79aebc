//! The filter of a bulk request, as a JSON object.

use commands::Filter;
use domain::{FromMember, Invalid, quoted};
use serde_json::{Map, Value, value::RawValue};

/// The names that a filter can have. `members` is not for clients.
const NAMES: [&str; 13] = [
    "status",
    "namespace",
    "key",
    "key_prefix",
    "group",
    "due_from",
    "due_to",
    "created_from",
    "created_to",
    "correlation_id",
    "destination",
    "metadata",
    "error",
];

/// A filter that a client gives. An empty one stands for every timer that the client may change.
pub(crate) struct BulkFilter(pub Filter);

impl FromMember<'_> for BulkFilter {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let mut members: Map<String, Value> =
            serde_json::from_str(raw.get()).map_err(|_| Invalid::new(name, "must be an object"))?;
        for (member, value) in &mut members {
            if !NAMES.contains(&member.as_str()) {
                return Err(Invalid::new(quoted(&format!("{name}.{member}")), "is not a known field"));
            }
            match (member.as_str(), &value) {
                // One or several, as an array or with commas.
                ("status" | "namespace", Value::String(text)) => {
                    *value = text.split(',').map(|one| Value::String(one.trim().to_owned())).collect();
                }
                ("status" | "namespace", Value::Array(_)) | ("metadata", Value::Object(_)) => {}
                ("metadata", _) => return Err(Invalid::new(format!("{name}.{member}"), "must be an object")),
                (_, Value::String(_)) => {}
                _ => return Err(Invalid::new(format!("{name}.{member}"), "must be a string")),
            }
        }
        let filter = serde_json::from_value(Value::Object(members)).map_err(|error| Invalid::new(name, error.to_string()))?;
        Ok(Self(filter))
    }
}

#[cfg(test)]
mod tests {
    use domain::Status;

    use super::*;

    fn read(text: &str) -> Result<Filter, String> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        BulkFilter::from_member("filter", raw).map(|filter| filter.0).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn one_or_several_are_read_alike() {
        for text in [r#"{"status":"pending,paused"}"#, r#"{"status":["pending","paused"]}"#] {
            assert_eq!(read(text).unwrap().status, [Status::Pending, Status::Paused], "{text}");
        }
        assert_eq!(read("{}").unwrap(), Filter::default());
        let filter = read(r#"{"metadata":{"customer.id":"42"},"key_prefix":"a","due_to":"2030-01-01T00:00:00Z"}"#).unwrap();
        assert_eq!((filter.metadata.len(), filter.key_prefix.as_deref()), (1, Some("a")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, refusal) in [
            ("[]", "filter must be an object"),
            (r#"{"colour":"red"}"#, "'filter.colour' is not a known field"),
            (r#"{"members":{}}"#, "'filter.members' is not a known field"),
            (r#"{"key":7}"#, "filter.key must be a string"),
            (r#"{"metadata":[]}"#, "filter.metadata must be an object"),
        ] {
            assert_eq!(read(text).unwrap_err(), refusal, "{text}");
        }
        assert!(read(r#"{"status":"done"}"#).unwrap_err().starts_with("filter status must be"));
    }
}
