use std::fmt;

use crate::{Invalid, id::parse_text, limits};

/// A name that timers of one namespace share, so that they can be counted and canceled together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Group(String);

impl Group {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        parse_text("group", text, limits::GROUP_CHARS_MAX).map(Self)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
