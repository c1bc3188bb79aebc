use std::{error::Error, fmt, sync::Arc};

/// Why something failed: in words for the log, and with the error that it came from, where there was one. Cheap to clone,
/// because the callers of one batch share one failure.
#[derive(Debug, Clone)]
pub struct Cause {
    text: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Cause {
    /// The error in its own words.
    pub fn of(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        Self::new(source.to_string(), source)
    }

    /// The error in better words than its own.
    pub fn new(text: impl Into<Arc<str>>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { text: text.into(), source: Some(Arc::from(source.into())) }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Errors rarely compare; causes are the same when they read the same.
impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cause {}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self { text: text.into(), source: None }
    }
}

impl From<&str> for Cause {
    fn from(text: &str) -> Self {
        Self { text: text.into(), source: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_reads_as_it_was_put_and_keeps_the_error_behind_it() {
        let cause = Cause::new("the disk is gone", fmt::Error);
        assert_eq!(cause.to_string(), "the disk is gone");
        assert!(cause.clone().source().is_some_and(|source| source.is::<fmt::Error>()));
        assert_eq!(Cause::of(fmt::Error).to_string(), fmt::Error.to_string());
        assert!(Cause::from("a sentence").source().is_none());
        assert_eq!(cause, Cause::from("the disk is gone"));
    }
}
