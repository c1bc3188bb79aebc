//! A JSON object whose fields are looked at one by one, so that every complaint can name its field.

use std::fmt;

use domain::Invalid;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

pub(super) struct Object<'a> {
    members: Vec<(String, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// Takes text that is known to be valid JSON.
    pub(super) fn parse(field: &str, text: &'a str) -> Result<Self, Invalid> {
        serde_json::from_str(text).map_err(|_| Invalid::new(field, "must be a JSON object"))
    }

    /// Whether there is a field of this name, `null` or not.
    pub(super) fn has(&self, field: &str) -> bool {
        self.members.iter().any(|(name, _)| name == field)
    }

    /// A field that is there and not `null`. Two of the same name are refused: nobody can say which one was meant.
    fn member(&self, field: &str) -> Result<Option<&'a str>, Invalid> {
        let mut found = self.members.iter().filter(|(name, _)| name == field).map(|(_, value)| value.get());
        let member = found.next();
        match found.next() {
            Some(_) => Err(Invalid::new(field, "must not be given twice")),
            None => Ok(member.filter(|text| *text != "null")),
        }
    }

    pub(super) fn text(&self, field: &str) -> Result<Option<String>, Invalid> {
        self.read(field, "must be a string")
    }

    pub(super) fn number(&self, field: &str) -> Result<Option<serde_json::Number>, Invalid> {
        self.read(field, "must be a number")
    }

    pub(super) fn object(&self, field: &str) -> Result<Option<Self>, Invalid> {
        self.member(field)?.map(|text| Self::parse(field, text)).transpose()
    }

    fn read<T: Deserialize<'a>>(&self, field: &str, rule: &str) -> Result<Option<T>, Invalid> {
        self.member(field)?.map(|text| serde_json::from_str(text).map_err(|_| Invalid::new(field, rule))).transpose()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Object { members })
            }
        }

        deserializer.deserialize_map(Members)
    }
}
