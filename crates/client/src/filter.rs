use serde_json::{Map, Value};

use crate::{Instant, Query, wire};

/// Which timers are meant: those for which everything holds that is said. As parameters, and as the `filter` of bulk calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter(Query);

impl Filter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Any condition by the name of its parameter, in place of one with the same name.
    #[must_use]
    pub fn with(self, name: impl Into<std::borrow::Cow<'static, str>>, value: impl Into<String>) -> Self {
        let name = name.into();
        Self(self.0.without(&name).with(name, value))
    }

    /// Timers with one of these statuses, separated by commas.
    #[must_use]
    pub fn status(self, status: impl Into<String>) -> Self {
        self.with("status", status)
    }

    #[must_use]
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        self.with("namespace", namespace)
    }

    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with("key", key)
    }

    #[must_use]
    pub fn key_prefix(self, prefix: impl Into<String>) -> Self {
        self.with("key_prefix", prefix)
    }

    #[must_use]
    pub fn group(self, group: impl Into<String>) -> Self {
        self.with("group", group)
    }

    #[must_use]
    pub fn correlation_id(self, id: impl Into<String>) -> Self {
        self.with("correlation_id", id)
    }

    #[must_use]
    pub fn destination(self, destination: impl Into<String>) -> Self {
        self.with("destination", destination)
    }

    #[must_use]
    pub fn error(self, part: impl Into<String>) -> Self {
        self.with("error", part)
    }

    /// Timers with this scalar at this path of their metadata.
    #[must_use]
    pub fn metadata(self, path: &str, value: impl Into<String>) -> Self {
        self.with(format!("metadata.{path}"), value)
    }

    #[must_use]
    pub fn due_from(self, at: Instant) -> Self {
        self.with("due_from", wire::text(at))
    }

    #[must_use]
    pub fn due_to(self, at: Instant) -> Self {
        self.with("due_to", wire::text(at))
    }

    #[must_use]
    pub fn created_from(self, at: Instant) -> Self {
        self.with("created_from", wire::text(at))
    }

    #[must_use]
    pub fn created_to(self, at: Instant) -> Self {
        self.with("created_to", wire::text(at))
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().next().is_none()
    }

    pub(crate) fn query(&self) -> Query {
        self.0.clone()
    }

    /// The same as the object of a bulk call.
    pub(crate) fn object(&self) -> Value {
        let (mut filter, mut metadata) = (Map::new(), Map::new());
        for (name, value) in self.0.iter() {
            match name.strip_prefix("metadata.") {
                Some(path) => metadata.insert(path.to_owned(), value.into()),
                None if name == "status" || name == "namespace" => {
                    filter.insert(name.to_owned(), value.split(',').map(Value::from).collect())
                }
                None => filter.insert(name.to_owned(), value.into()),
            };
        }
        if !metadata.is_empty() {
            filter.insert("metadata".to_owned(), metadata.into());
        }
        filter.into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_is_the_same_as_parameters_and_as_an_object() {
        let filter = Filter::new()
            .status("pending")
            .status("failed,expired")
            .key_prefix("a b")
            .metadata("customer.id", "42")
            .metadata("x", "y");
        assert_eq!(
            filter.query().on("/timers"),
            "/timers?status=failed%2Cexpired&key_prefix=a+b&metadata.customer.id=42&metadata.x=y"
        );
        assert_eq!(
            filter.object(),
            json!({"status": ["failed", "expired"], "key_prefix": "a b", "metadata": {"customer.id": "42", "x": "y"}})
        );
        assert!(Filter::new().is_empty() && !filter.is_empty());
    }
}
