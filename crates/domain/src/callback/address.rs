//! The receiver of a callback as clients name it in a filter.

use std::{borrow::Cow, fmt};

/// A receiver, without the path: `host:port` of a URL, or the subject of a message. It borrows from the callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Address<'a> {
    Host(&'a str, u16),
    Name(&'a str),
}

impl Address<'_> {
    /// Whether this is its text, without making it.
    pub fn is_written(&self, text: &str) -> bool {
        match self {
            Self::Host(host, port) => {
                text.strip_prefix(host).and_then(|rest| rest.strip_prefix(':')).is_some_and(|text| text.parse() == Ok(*port))
            }
            Self::Name(name) => *name == text,
        }
    }
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host, port) => write!(f, "{host}:{port}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl<'a> From<Address<'a>> for Cow<'a, str> {
    fn from(address: Address<'a>) -> Self {
        match address {
            Address::Host(..) => address.to_string().into(),
            Address::Name(name) => name.into(),
        }
    }
}
