//! A JSON object, member by member, each as the text it was: so that every complaint can name its field, and nothing
//! that must survive is taken apart.

use std::{borrow::Cow, fmt, ops::RangeInclusive};

use commands::Field;
use domain::{Invalid, JsonText, quoted, string_in};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{error::ApiError, limits};

pub(crate) struct Object<'a> {
    members: Vec<(Name<'a>, &'a RawValue)>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    /// Reads one object and refuses every member whose name is not among `known`, and every one that is given twice.
    pub(crate) fn parse(text: &'a str, known: &[&str]) -> Result<Self, ApiError> {
        Self::parse_as("the body", text, known)
    }

    /// The same of a text that is called something else.
    pub(crate) fn parse_as(subject: &str, text: &'a str, known: &[&str]) -> Result<Self, ApiError> {
        let object: Self = serde_json::from_str(text).map_err(|error| malformed(subject, &error))?;
        object.check_names(known)?;
        Ok(object)
    }

    /// The object that this member must be, read in the same way.
    pub(crate) fn object(&self, name: &str, known: &[&str]) -> Result<Option<Self>, Invalid> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let object: Self = serde_json::from_str(raw.get()).map_err(|_| Invalid::new(name, "must be an object"))?;
        object.check_names(known).map_err(|invalid| invalid.within(name))?;
        Ok(Some(object))
    }

    fn check_names(&self, known: &[&str]) -> Result<(), Invalid> {
        for (at, (Name(name), _)) in self.members.iter().enumerate() {
            if !known.contains(&name.as_ref()) {
                return Err(Invalid::new(quoted(name), "is not a known field"));
            }
            if self.members[..at].iter().any(|(earlier, _)| earlier.0 == *name) {
                return Err(Invalid::new(name.as_ref(), "must not be given twice"));
            }
        }
        Ok(())
    }

    /// The first of these names that is given.
    pub(crate) fn first_of(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().find(|name| self.raw(name).is_some()).copied()
    }

    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().find(|(member, _)| member.0 == name).map(|(_, raw)| *raw)
    }

    /// The text of a string.
    pub(crate) fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, Invalid> {
        self.raw(name).map(|raw| string_in(raw).ok_or_else(|| Invalid::new(name, "must be a string"))).transpose()
    }

    /// A whole number that fits 32 bits, however it is written: `2`, `2.0` and `2e0` are the same number.
    pub(crate) fn whole(&self, name: &str) -> Result<Option<u32>, Invalid> {
        self.whole_in(name, 0..=u32::MAX)
    }

    /// A whole number in this range.
    pub(crate) fn whole_in(&self, name: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, Invalid> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let number = serde_json::from_str::<f64>(raw.get()).ok();
        let is_allowed =
            |number: &f64| number.fract() == 0.0 && (f64::from(*range.start())..=f64::from(*range.end())).contains(number);
        match number.filter(is_allowed) {
            // Exact: the number was just seen to be whole and in range.
            Some(number) => Ok(Some(number as u32)),
            None => Err(Invalid::new(name, format!("must be a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// Any number; whatever is none breaks the rule.
    pub(crate) fn number(&self, name: &str, rule: impl FnOnce() -> String) -> Result<Option<f64>, Invalid> {
        self.raw(name).map(|raw| serde_json::from_str(raw.get()).map_err(|_| Invalid::new(name, rule()))).transpose()
    }

    /// The elements of an array, each as the text it was; at least one, and not more than `elements_max`.
    pub(crate) fn elements(&self, name: &str, elements_max: usize) -> Result<Option<Vec<&'a RawValue>>, Invalid> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        let not_an_array = |_| Invalid::new(name, "must be an array");
        // Counted before they are collected: what is ignored takes no memory, however many there are.
        let count = serde_json::from_str::<Vec<IgnoredAny>>(raw.get()).map_err(not_an_array)?.len();
        if !(1..=elements_max).contains(&count) {
            return Err(Invalid::new(name, format!("must have 1 to {elements_max} elements")));
        }
        serde_json::from_str(raw.get()).map(Some).map_err(not_an_array)
    }

    /// A member that `null` clears.
    pub(crate) fn clearable<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&Self, &str) -> Result<Option<T>, Invalid>,
    ) -> Result<Field<T>, Invalid> {
        if self.is_null(name) {
            return Ok(Field::Clear);
        }
        Ok(parse(self, name)?.map_or(Field::Absent, Field::Set))
    }

    /// Whether the member is there and `null`.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| raw.get() == "null")
    }

    /// Any JSON, as the text it was.
    pub(crate) fn json(&self, name: &str, bytes_max: usize) -> Result<Option<JsonText>, Invalid> {
        self.raw(name).map(|raw| JsonText::of_raw(name, raw, bytes_max)).transpose()
    }
}

fn malformed(subject: &str, error: &serde_json::Error) -> ApiError {
    use serde_json::error::Category;
    ApiError::Malformed(match error.classify() {
        Category::Data => format!("{subject} must be a JSON object"),
        _ => format!("{subject} is not valid JSON: {error}"),
    })
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
                while members.len() < limits::MEMBERS_READ_MAX
                    && let Some(member) = map.next_entry()?
                {
                    members.push(member);
                }
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Object { members })
            }
        }

        deserializer.deserialize_map(Members)
    }
}
