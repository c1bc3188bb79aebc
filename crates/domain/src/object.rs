//! JSON objects that are read into structs. A struct names its members once, for serde; what is wrong with the names of an object is
//! found in a second look, which only a refused text costs.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor, value},
    forward_to_deserialize_any,
};
use serde_json::value::RawValue;

use crate::{Invalid, limits, string_in};

/// Reads an object into a struct whose members take any value. `None` where the text is not an object, or where one of the names is
/// unknown or given twice: [`MemberNames`] tells which.
pub fn read_object<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    // Serde would take an array for the members of a struct in their order.
    if !text.trim_ascii_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Reads the object that `field` must be, into a struct whose members take any value.
pub fn read_object_in<'a, T: Deserialize<'a>>(field: &str, text: &'a str) -> Result<T, Invalid> {
    read_object(text).ok_or_else(|| {
        let checked = MemberNames::in_text(text).map(|names| names.check(&[names_of::<T>()]));
        match checked {
            Ok(Err(invalid)) => invalid.within(field),
            _ => Invalid::new(field, "must be an object"),
        }
    })
}

/// The names that serde reads into this struct, in the order of its fields.
pub fn names_of<'a, T: Deserialize<'a>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Always an error: nothing is read.
    drop(T::deserialize(Inquiry { names: &mut names }));
    names
}

/// A deserializer that only learns which names are asked for.
struct Inquiry<'n> {
    names: &'n mut &'static [&'static str],
}

impl<'de> Deserializer<'de> for Inquiry<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("only names are asked for"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.names = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

/// The names of an object's members, in their order. Only the first ones are kept: no struct has as many, so that an object with more
/// is refused for one of these, and cannot fill the memory with the rest.
pub struct MemberNames<'a>(Vec<Cow<'a, str>>);

impl<'a> MemberNames<'a> {
    /// Fails with what serde says about a text that is not a JSON object.
    pub fn in_text(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Refuses the first name that is not known or given twice.
    pub fn check(&self, known: &[&[&str]]) -> Result<(), Invalid> {
        for (at, name) in self.0.iter().enumerate() {
            if !known.iter().any(|known| known.contains(&name.as_ref())) {
                return Err(Invalid::new(quoted(name), "is not a known field"));
            }
            if self.0[..at].contains(name) {
                return Err(Invalid::new(name.as_ref(), "must not be given twice"));
            }
        }
        Ok(())
    }

    /// The first of `known` that is among the names more than once.
    pub fn first_twice<'k>(&self, known: &[&'k str]) -> Option<&'k str> {
        known.iter().find(|known| self.0.iter().filter(|name| name == *known).count() > 1).copied()
    }

    /// The first of these that is among the names.
    pub fn first_of<'k>(&self, sought: &[&'k str]) -> Option<&'k str> {
        sought.iter().find(|sought| self.0.iter().any(|name| name == **sought)).copied()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MemberNames<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = MemberNames<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemberNames<'de>, A::Error> {
                let mut names = Vec::new();
                while let Some((Name(name), IgnoredAny)) = map.next_entry()? {
                    if names.len() < limits::MEMBER_NAMES_MAX {
                        names.push(name);
                    }
                }
                Ok(MemberNames(names))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

/// The members of an object of strings, in their order, also those that are given twice. What is not a string has no value, so that the
/// complaint can name it.
pub struct StringMembers(pub Vec<(String, Option<String>)>);

impl<'de> Deserialize<'de> for StringMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = StringMembers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<StringMembers, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, raw)) = members.next_entry::<_, &RawValue>()? {
                    pairs.push((name, string_in(raw).map(Cow::into_owned)));
                }
                Ok(StringMembers(pairs))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// A made-up name, short enough and tame enough to be sent back.
pub fn quoted(name: &str) -> String {
    let tame: String = name.chars().filter(|c| !c.is_control()).take(limits::ECHOED_CHARS_MAX).collect();
    format!("'{tame}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Given;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
    struct Point<'a> {
        #[serde(default)]
        on_x: Given<'a, Cow<'a, str>>,
        #[serde(default)]
        y: Given<'a, Cow<'a, str>>,
    }

    #[test]
    fn a_struct_tells_the_names_that_it_reads() {
        assert_eq!(names_of::<Point<'_>>(), ["onX", "y"]);
        assert_eq!(names_of::<u32>(), [""; 0]);
    }

    #[test]
    fn members_are_read_whatever_they_are() {
        let point: Point<'_> = read_object(" {\"y\": [1, 2] ,\"on\\u0058\":null}\n").unwrap();
        assert!(point.on_x.is_null() && point.y.is_given() && !point.y.is_null());
        let point: Point<'_> = read_object("{}").unwrap();
        assert!(!point.on_x.is_given() && !point.y.is_given());
    }

    #[test]
    fn wrong_names_are_told_in_their_order() {
        let many: String = (0..100).map(|n| format!(r#""y":{n},"#)).collect();
        let many = format!(r#"{{{many}"z":1}}"#);
        for (text, complaint) in [
            ("[]", "point must be an object"),
            ("7", "point must be an object"),
            (r#"{"z":1,"z":2}"#, "point.'z' is not a known field"),
            (r#"{"on_x":1}"#, "point.'on_x' is not a known field"),
            (r#"{"y":1,"y":2,"z":3}"#, "point.y must not be given twice"),
            (r#"{"y":1,"\u0079":2}"#, "point.y must not be given twice"),
            (many.as_str(), "point.y must not be given twice"),
        ] {
            assert_eq!(read_object_in::<Point<'_>>("point", text).err().unwrap().to_string(), complaint, "{text}");
        }
    }

    #[test]
    fn names_are_found_in_the_order_in_which_they_are_sought() {
        let names = MemberNames::in_text(r#"{"a":1,"b":2,"b":3,"a":4,"c":5}"#).unwrap();
        assert_eq!((names.first_of(&["x", "b", "a"]), names.first_of(&["x"])), (Some("b"), None));
        assert_eq!((names.first_twice(&["c", "b", "a"]), names.first_twice(&["c", "x"])), (Some("b"), None));
        assert!(MemberNames::in_text("[").is_err() && MemberNames::in_text(r#"{"a":1} x"#).is_err());
    }
}
