//! The filter as a JSON object, with the names of the parameters.

use std::borrow::Cow;

use commands::Filter;
use domain::{FromMember, Given, Invalid, StringMembers, quoted, read_object_in};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::Texts;
use crate::schema;

/// Which timers are meant: those for which everything holds that is said here. An empty object means every timer.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"status": "pending", "namespace": "billing"}))]
pub(crate) struct BulkFilter<'a> {
    /// Only timers in this status, or in one of several: an array, or separated by commas.
    #[schema(value_type = schema::StatusNames, required = false)]
    #[serde(default)]
    status: Given<'a, OneOrSeveral>,
    /// Only timers of this namespace, or of one of several: an array, or separated by commas.
    #[schema(value_type = schema::NamespaceNames, required = false)]
    #[serde(default)]
    namespace: Given<'a, OneOrSeveral>,
    /// Only timers with this key.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "order-456")]
    #[serde(default)]
    key: Given<'a, Cow<'a, str>>,
    /// Only timers whose key begins with this.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "order-")]
    #[serde(default)]
    key_prefix: Given<'a, Cow<'a, str>>,
    /// Only timers of this group.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "campaign-7")]
    #[serde(default)]
    group: Given<'a, Cow<'a, str>>,
    /// Only timers whose `execute_at` is not earlier, RFC 3339.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-31T12:00:00Z")]
    #[serde(default)]
    due_from: Given<'a, Cow<'a, str>>,
    /// Only timers whose `execute_at` is earlier.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-02-28T12:00:00Z")]
    #[serde(default)]
    due_to: Given<'a, Cow<'a, str>>,
    /// Only timers that were not created earlier, RFC 3339.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-01T12:00:00Z")]
    #[serde(default)]
    created_from: Given<'a, Cow<'a, str>>,
    /// Only timers that were created earlier.
    #[schema(value_type = String, required = false, format = DateTime, example = "2030-01-02T12:00:00Z")]
    #[serde(default)]
    created_to: Given<'a, Cow<'a, str>>,
    /// Only timers with this correlation id.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", example = "req-7f3a")]
    #[serde(default)]
    correlation_id: Given<'a, Cow<'a, str>>,
    /// Only timers that call this receiver: `host:port`, or a NATS subject.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 1024, pattern = r"^[^\x00]*$", example = "shop.example:443")]
    #[serde(default)]
    destination: Given<'a, Cow<'a, str>>,
    /// Only timers with these scalars in their metadata: dotted paths, and the text of each.
    #[schema(value_type = schema::MetadataConditions, required = false)]
    #[serde(default)]
    metadata: Given<'a, Conditions>,
    /// Only timers whose last error contains this.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 1024, pattern = r"^[^\x00]*$", example = "timed out")]
    #[serde(default)]
    error: Given<'a, Cow<'a, str>>,
}

impl<'a> FromMember<'a> for BulkFilter<'a> {
    fn from_member(name: &str, raw: &'a RawValue) -> Result<Self, Invalid> {
        read_object_in(name, raw.get())
    }
}

impl BulkFilter<'_> {
    /// The filter that is meant. Complaints call the object `name`.
    pub(crate) fn into_filter(self, name: &str) -> Result<Filter, Invalid> {
        self.texts().and_then(Texts::judge).map_err(|invalid| invalid.within(name))
    }

    fn texts(self) -> Result<Texts, Invalid> {
        Ok(Texts {
            status: self.status.read("status")?.map(|OneOrSeveral(texts)| texts),
            namespace: self.namespace.read("namespace")?.map(|OneOrSeveral(texts)| texts),
            key: text(&self.key, "key")?,
            key_prefix: text(&self.key_prefix, "key_prefix")?,
            group: text(&self.group, "group")?,
            due: (text(&self.due_from, "due_from")?, text(&self.due_to, "due_to")?),
            created: (text(&self.created_from, "created_from")?, text(&self.created_to, "created_to")?),
            correlation_id: text(&self.correlation_id, "correlation_id")?,
            destination: text(&self.destination, "destination")?,
            metadata: self.metadata.read("metadata")?.map_or_else(Vec::new, |Conditions(conditions)| conditions),
            error: text(&self.error, "error")?,
        })
    }
}

fn text<'a>(member: &Given<'a, Cow<'a, str>>, name: &str) -> Result<Option<String>, Invalid> {
    Ok(member.read(name)?.map(Cow::into_owned))
}

/// Texts as an array, or separated by commas.
struct OneOrSeveral(Vec<String>);

impl FromMember<'_> for OneOrSeveral {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        if let Ok(text) = Cow::from_member(name, raw) {
            return Ok(Self(text.split(',').map(str::to_owned).collect()));
        }
        let texts = serde_json::from_str(raw.get()).ok().filter(|texts: &Vec<String>| !texts.is_empty());
        texts.map(Self).ok_or_else(|| Invalid::new(name, "must be a string or an array of strings"))
    }
}

/// Paths in the metadata, and the text that each must have.
struct Conditions(Vec<(String, String)>);

impl FromMember<'_> for Conditions {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let members = serde_json::from_str(raw.get());
        let StringMembers(members) = members.map_err(|_| Invalid::new(name, "must be an object of paths and texts"))?;
        let condition = |(path, text): (String, Option<String>)| match text {
            Some(text) => Ok((path, text)),
            None => Err(Invalid::new(format!("{name}.{}", quoted(&path)), "must be a string")),
        };
        members.into_iter().map(condition).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use domain::{Status, names_of};

    use super::*;

    fn read(text: &str) -> Result<Filter, String> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let filter = BulkFilter::from_member("filter", raw).and_then(|filter| filter.into_filter("filter"));
        filter.map_err(|invalid| invalid.to_string())
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
    fn the_object_has_the_names_of_the_parameters() {
        let (object, parameters) = (names_of::<BulkFilter<'_>>(), super::super::names());
        let without_metadata: Vec<&str> = object.iter().copied().filter(|name| *name != "metadata").collect();
        assert_eq!(without_metadata, parameters);
        assert!(object.contains(&"metadata"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, refusal) in [
            ("[]", "filter must be an object"),
            (r#"{"colour":"red"}"#, "filter.'colour' is not a known field"),
            (r#"{"members":{}}"#, "filter.'members' is not a known field"),
            (r#"{"key":7}"#, "filter.key must be a string"),
            (r#"{"key":"a","key":"b"}"#, "filter.key must not be given twice"),
            (r#"{"metadata":{"a":"1","\u0061":"2"}}"#, "filter.metadata.'a' must not be given twice"),
            (r#"{"key":null}"#, "filter.key must be a string"),
            (r#"{"status":[]}"#, "filter.status must be a string or an array of strings"),
            (r#"{"namespace":["a",1]}"#, "filter.namespace must be a string or an array of strings"),
            (r#"{"metadata":[]}"#, "filter.metadata must be an object of paths and texts"),
            (r#"{"metadata":{"a":1}}"#, "filter.metadata.'a' must be a string"),
        ] {
            assert_eq!(read(text).unwrap_err(), refusal, "{text}");
        }
        assert!(read(r#"{"status":"done"}"#).unwrap_err().starts_with("filter.status must be pending, "));
    }
}
