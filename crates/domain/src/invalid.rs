/// Input that breaks a rule: the field and the rule, in words for the client that sent it.
///
/// It reads as one sentence: `execute_at must be in the future`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {rule}")]
pub struct Invalid {
    pub field: String,
    pub rule: String,
}

impl Invalid {
    pub fn new(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { field: field.into(), rule: rule.into() }
    }

    /// The same error, seen from the object that holds the field: `url` becomes `callback.url`.
    pub fn within(mut self, parent: &str) -> Self {
        self.field = format!("{parent}.{}", self.field);
        self
    }

    /// The same complaint about an object that stands under another name: `callback.url` becomes `on_success.url`.
    pub fn in_place_of(mut self, usual: &str, name: &str) -> Self {
        let rest = self.field.strip_prefix(usual).filter(|rest| rest.is_empty() || rest.starts_with('.'));
        self.field = rest.map_or_else(|| format!("{name}.{}", self.field), |rest| format!("{name}{rest}"));
        self
    }

    /// The same complaint about a field that has another name here.
    pub fn named(mut self, field: &str) -> Self {
        field.clone_into(&mut self.field);
        self
    }
}
