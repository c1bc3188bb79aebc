use std::fmt::Write;

/// Which timer is meant: by its id, or by its namespace and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerRef {
    Id(String),
    Key { namespace: String, key: String },
}

impl TimerRef {
    /// The timer with this key.
    pub fn key(namespace: impl Into<String>, key: impl Into<String>) -> Self {
        Self::Key { namespace: namespace.into(), key: key.into() }
    }

    /// Its path at the service.
    pub fn path(&self) -> String {
        match self {
            Self::Id(id) => format!("/timers/{}", encoded(id)),
            Self::Key { namespace, key } => format!("/namespaces/{}/timers/{}", encoded(namespace), encoded(key)),
        }
    }
}

impl From<&str> for TimerRef {
    fn from(id: &str) -> Self {
        Self::Id(id.to_owned())
    }
}

impl From<&String> for TimerRef {
    fn from(id: &String) -> Self {
        Self::Id(id.clone())
    }
}

impl From<&Self> for TimerRef {
    fn from(timer: &Self) -> Self {
        timer.clone()
    }
}

/// One part of a path.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_part_of_the_path() {
        assert_eq!(TimerRef::from("a-1").path(), "/timers/a-1");
        assert_eq!(TimerRef::key("shop", "a/b ü").path(), "/namespaces/shop/timers/a%2Fb%20%C3%BC");
    }
}
