//! Members of a JSON object as they were given, and how they become values. A member keeps its text until it is read under its name,
//! so that every complaint names its field, and the fields are judged in one order however they were written.

use std::{borrow::Cow, marker::PhantomData};

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{
    Callback, CallbackUrl, CorrelationId, Delivery, Group, Invalid, JsonText, Key, Namespace, OnConflict, RetryPolicy, Rights,
    Span, TimerId, Timestamp, string_in,
};

/// A member that reads as `T`, if it is there. It stands in a struct with `#[serde(bound(deserialize = "'de: 'a"))]`, under
/// `#[serde(default)]`, because one that is missing is not given.
pub struct Given<'a, T> {
    raw: Option<&'a RawValue>,
    reads_as: PhantomData<fn() -> T>,
}

impl<T> Default for Given<'_, T> {
    fn default() -> Self {
        Self { raw: None, reads_as: PhantomData }
    }
}

impl<'de: 'a, 'a, T> Deserialize<'de> for Given<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self { raw: Some(raw), reads_as: PhantomData })
    }
}

impl<'a, T: FromMember<'a>> Given<'a, T> {
    /// Whether the member is there, `null` or not.
    pub const fn is_given(&self) -> bool {
        self.raw.is_some()
    }

    /// Whether the member is there and `null`.
    pub fn is_null(&self) -> bool {
        self.raw.is_some_and(|raw| raw.get() == "null")
    }

    /// The value, if the member is there. `null` is a value like any other.
    pub fn read(&self, name: &str) -> Result<Option<T>, Invalid> {
        self.raw.map(|raw| T::from_member(name, raw)).transpose()
    }

    /// The value, if the member is there and not `null`.
    pub fn read_unless_null(&self, name: &str) -> Result<Option<T>, Invalid> {
        if self.is_null() { Ok(None) } else { self.read(name) }
    }

    /// The value of a member that must be there.
    pub fn required(&self, name: &str) -> Result<T, Invalid> {
        self.read(name)?.ok_or_else(|| Invalid::new(name, "is required"))
    }
}

/// A value that a member can be.
pub trait FromMember<'a>: Sized {
    /// Complaints call the member `name`.
    fn from_member(name: &str, raw: &'a RawValue) -> Result<Self, Invalid>;
}

impl<'a> FromMember<'a> for Cow<'a, str> {
    fn from_member(name: &str, raw: &'a RawValue) -> Result<Self, Invalid> {
        string_in(raw).ok_or_else(|| Invalid::new(name, "must be a string"))
    }
}

/// Values that are strings, with the function that parses them: one that is told the name of the member, or one that has a name of
/// its own for it.
macro_rules! from_strings {
    ($($value:ty: $parse:expr),* $(,)?) => {$(
        impl FromMember<'_> for $value {
            fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
                let parse: fn(&str, &str) -> Result<Self, Invalid> = $parse;
                parse(name, &Cow::from_member(name, raw)?)
            }
        }
    )*};
}

from_strings! {
    Timestamp: Self::parse,
    Span: Self::parse,
    TimerId: Self::parse_chosen,
    Key: |name, text| Self::parse(text).map_err(|invalid| invalid.named(name)),
    Namespace: |name, text| Self::parse(text).map_err(|invalid| invalid.named(name)),
    Group: |name, text| Self::parse(text).map_err(|invalid| invalid.named(name)),
    CorrelationId: |name, text| Self::parse(text).map_err(|invalid| invalid.named(name)),
    CallbackUrl: |name, text| Self::parse(text).map_err(|invalid| invalid.named(name)),
    OnConflict: |name, text| Self::parse(text).ok_or_else(|| Invalid::new(name, "must be reject, replace, keep, postpone, earliest or latest")),
    Delivery: |name, text| Self::parse(text).ok_or_else(|| Invalid::new(name, "must be at_least_once or at_most_once")),
    Rights: |name, text| Self::parse(text).ok_or_else(|| Invalid::new(name, "must be read or write")),
}

impl FromMember<'_> for Callback {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        Self::from_checked(raw.get()).map_err(|invalid| invalid.in_place_of("callback", name))
    }
}

/// A retry policy is called so in the dialects that write it in this form.
impl FromMember<'_> for RetryPolicy {
    fn from_member(_name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        Self::from_json(raw.get())
    }
}

/// Any JSON, as the text it was, of limited length.
pub struct Json<const BYTES_MAX: usize>(pub JsonText);

impl<const BYTES_MAX: usize> FromMember<'_> for Json<BYTES_MAX> {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        JsonText::of_checked(name, raw.get(), BYTES_MAX).map(Self)
    }
}

impl<const BYTES_MAX: usize> From<Json<BYTES_MAX>> for JsonText {
    fn from(Json(text): Json<BYTES_MAX>) -> Self {
        text
    }
}

/// A whole number in this range, however it is written: `2`, `2.0` and `2e0` are the same number.
pub struct Whole<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> FromMember<'_> for Whole<MIN, MAX> {
    fn from_member(name: &str, raw: &RawValue) -> Result<Self, Invalid> {
        let is_allowed = |number: &f64| number.fract() == 0.0 && (f64::from(MIN)..=f64::from(MAX)).contains(number);
        match serde_json::from_str(raw.get()).ok().filter(is_allowed) {
            // Exact: the number was just seen to be whole and in range.
            Some(number) => Ok(Self(number as u32)),
            None => Err(Invalid::new(name, format!("must be a whole number from {MIN} to {MAX}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given<T>(json: &str) -> Given<'_, T> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_member_is_read_under_its_name() {
        let key = |json| given::<Key>(json).read("id").map_err(|invalid| invalid.to_string());
        assert_eq!(key(r#""\u0061""#), Ok(Some(Key::parse("a").unwrap())));
        assert_eq!(key("null"), Err("id must be a string".to_owned()));
        assert_eq!(key(r#""""#), Err("id must have 1 to 255 characters".to_owned()));
        let missing = Given::<Key>::default();
        assert_eq!((missing.read("id"), missing.is_given(), missing.is_null()), (Ok(None), false, false));
        assert_eq!(missing.required("id").unwrap_err().to_string(), "id is required");
        assert_eq!(given::<Key>("null").read_unless_null("id"), Ok(None));
        assert_eq!(given::<Span>("5").read_unless_null("delay").unwrap_err().to_string(), "delay must be a string");
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        let whole = |json| given::<Whole<1, 10>>(json).read("n").ok().flatten().map(|Whole(number)| number);
        for json in ["2", "2.0", "2e0", "20e-1"] {
            assert_eq!(whole(json), Some(2), "{json}");
        }
        for json in ["0", "11", "-1", "1.5", "1e400", "\"2\"", "null", "[]"] {
            assert_eq!(whole(json), None, "{json}");
        }
        assert_eq!(given::<Whole<1, 10>>("0").read("n").err().unwrap().to_string(), "n must be a whole number from 1 to 10");
    }

    #[test]
    fn json_is_kept_to_the_byte_and_limited() {
        let json = |text| given::<Json<20>>(text).read("metadata").map(|json| json.map(|Json(json)| json.as_str().to_owned()));
        assert_eq!(json("[ 1.10,\"\\u0061\" ]"), Ok(Some("[ 1.10,\"\\u0061\" ]".to_owned())));
        assert_eq!(json("1234567890123456789012").unwrap_err().to_string(), "metadata must not be longer than 20 bytes");
    }
}
