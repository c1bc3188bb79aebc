use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::Error;

/// Any JSON as the text that it is: a payload goes out and comes back byte for byte, whatever its numbers are.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The JSON of a value.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        serde_json::value::to_raw_value(value).map(Self).map_err(|error| Error::Usage(format!("this is not JSON: {error}")))
    }

    /// A text that must be JSON.
    pub fn text(text: impl Into<String>) -> Result<Self, Error> {
        RawValue::from_string(text.into()).map(Self).map_err(|error| Error::Usage(format!("this is not JSON: {error}")))
    }

    /// A string.
    pub(crate) fn string(text: &str) -> Self {
        Self::raw(serde_json::Value::from(text).to_string())
    }

    /// An object, its members with their texts as they are.
    pub(crate) fn object<'a>(members: impl Iterator<Item = (&'a str, &'a Self)>) -> Self {
        let members: Vec<_> = members.map(|(name, value)| format!("{}:{value}", Self::string(name))).collect();
        Self::raw(format!("{{{}}}", members.join(",")))
    }

    /// What was put together from JSON is JSON.
    fn raw(text: String) -> Self {
        RawValue::from_string(text).map_or_else(|_| Self::null(), Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// What it means.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(self.0.get()).map_err(|error| Error::Unreadable(format!("an answer cannot be read: {error}")))
    }

    /// `null`.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({})", self.0.get())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        let text = r#"{"a": 1.10, "b": 12345678901234567890123, "a": 2}"#;
        let json = Json::text(text).unwrap();
        assert_eq!((json.as_str(), serde_json::to_string(&json).unwrap().as_str()), (text, text));
        assert!(Json::text("{").is_err());
        assert_eq!(Json::of(&[1, 2]).unwrap().as_str(), "[1,2]");
    }
}
