//! The filter as a JSON object, with the names of the parameters.

use commands::Filter;
use domain::{FromMember, Invalid, quoted};
use serde_json::{Map, Value, value::RawValue};

use super::Texts;

/// A filter that a client gives. An empty one stands for every timer that the client may see.
pub(crate) struct FilterObject(pub Filter);

impl FromMember<'_> for FilterObject {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let members: Map<String, Value> = serde_json::from_str(raw.get()).map_err(|_| Invalid::new(name, "must be an object"))?;
        let mut texts = Texts::default();
        for (member, value) in members {
            texts.say(name, &member, value)?;
        }
        texts.judge().map(Self).map_err(|invalid| invalid.within(name))
    }
}

impl Texts {
    fn say(&mut self, parent: &str, member: &str, value: Value) -> Result<(), Invalid> {
        let field = || format!("{parent}.{member}");
        let text = |value| match value {
            Value::String(text) => Ok(Some(text)),
            _ => Err(Invalid::new(field(), "must be a string")),
        };
        match member {
            "status" => self.status = Some(one_or_several(&field(), value)?),
            "namespace" => self.namespace = Some(one_or_several(&field(), value)?),
            "key" => self.key = text(value)?,
            "key_prefix" => self.key_prefix = text(value)?,
            "group" => self.group = text(value)?,
            "due_from" => self.due.0 = text(value)?,
            "due_to" => self.due.1 = text(value)?,
            "created_from" => self.created.0 = text(value)?,
            "created_to" => self.created.1 = text(value)?,
            "correlation_id" => self.correlation_id = text(value)?,
            "destination" => self.destination = text(value)?,
            "error" => self.error = text(value)?,
            "metadata" => self.metadata = conditions(&field(), value)?,
            _ => return Err(Invalid::new(quoted(&field()), "is not a known field")),
        }
        Ok(())
    }
}

/// As an array, or with commas.
fn one_or_several(field: &str, value: Value) -> Result<Vec<String>, Invalid> {
    let wrong = || Invalid::new(field, "must be a string or an array of strings");
    match value {
        Value::String(text) => Ok(text.split(',').map(str::to_owned).collect()),
        Value::Array(items) if !items.is_empty() => {
            items.into_iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        _ => Err(wrong()),
    }
}

fn conditions(field: &str, value: Value) -> Result<Vec<(String, String)>, Invalid> {
    let Value::Object(members) = value else { return Err(Invalid::new(field, "must be an object of paths and texts")) };
    let condition = |(path, text): (String, Value)| match text {
        Value::String(text) => Ok((path, text)),
        _ => Err(Invalid::new(quoted(&format!("{field}.{path}")), "must be a string")),
    };
    members.into_iter().map(condition).collect()
}

#[cfg(test)]
mod tests {
    use domain::Status;

    use super::*;

    fn read(text: &str) -> Result<Filter, String> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        FilterObject::from_member("filter", raw).map(|filter| filter.0).map_err(|invalid| invalid.to_string())
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
            (r#"{"status":[]}"#, "filter.status must be a string or an array of strings"),
            (r#"{"metadata":[]}"#, "filter.metadata must be an object of paths and texts"),
            (r#"{"metadata":{"a":1}}"#, "'filter.metadata.a' must be a string"),
        ] {
            assert_eq!(read(text).unwrap_err(), refusal, "{text}");
        }
        assert!(read(r#"{"status":"done"}"#).unwrap_err().starts_with("filter.status must be pending, "));
    }
}
