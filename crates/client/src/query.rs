use std::borrow::Cow;

use url::form_urlencoded::Serializer;

/// The parameters of a request, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query(Vec<(Cow<'static, str>, String)>);

impl Query {
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more parameter.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// The same with one more parameter, if there is a value.
    #[must_use]
    pub fn with_some(self, name: impl Into<Cow<'static, str>>, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The same without this parameter.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(known, _)| known != name);
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_str()))
    }

    /// The path with these parameters.
    pub fn on(&self, path: &str) -> String {
        if self.0.is_empty() {
            return path.to_owned();
        }
        let mut text = Serializer::new(String::new());
        text.extend_pairs(self.iter());
        format!("{path}?{}", text.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded() {
        assert_eq!(Query::new().on("/timers"), "/timers");
        let query = Query::new().with("error", "a b&c").with_some("key", None::<String>).with("metadata.a", "ü");
        assert_eq!(query.on("/timers"), "/timers?error=a+b%26c&metadata.a=%C3%BC");
    }
}
