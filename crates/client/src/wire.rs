//! How instants are written and read in JSON.

use serde::{Deserialize, Deserializer, Serializer, de};

use crate::Instant;

/// RFC 3339 in UTC, without digits that say nothing.
pub(crate) fn text(at: Instant) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
}

fn parse<E: de::Error>(text: &str) -> Result<Instant, E> {
    chrono::DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()).map_err(de::Error::custom)
}

pub(crate) mod instant {
    use super::{Deserialize, Deserializer, Instant, Serializer, parse, text};

    pub fn serialize<S: Serializer>(at: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(*at))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        parse(&std::borrow::Cow::<'de, str>::deserialize(deserializer)?)
    }
}

pub(crate) mod some_instant {
    use super::{Deserialize, Deserializer, Instant, Serializer, parse, text};

    pub fn serialize<S: Serializer>(at: &Option<Instant>, serializer: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => serializer.serialize_str(&text(*at)),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Instant>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|text| parse(&text)).transpose()
    }
}
