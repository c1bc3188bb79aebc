use std::fmt;

use uuid::Uuid;

use crate::{Invalid, Timestamp, limits};

/// The id of a timer. It is random and in order of creation, made by the service or by the client, unless the client gave a key: then
/// the same namespace and key always yield the same id. Both a key and an id of the client's make creates idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(Uuid);

/// The name space (in the sense of RFC 9562) of ids of timers that follow the end of another.
const FOLLOWING: Uuid = Uuid::from_u128(0x0d5c_8f2e_63a4_4b7b_9e1f_2b60_c4f7_715a);
/// The name space (in the sense of RFC 9562) of ids made from keys.
const KEYED: Uuid = Uuid::from_u128(0x6f1d_3c52_9a0b_4d0e_8a51_7d1c_0a6e_42b7);

impl TimerId {
    /// The end of the order of ids.
    pub const LAST: Self = Self(Uuid::max());

    pub fn random(now: Timestamp) -> Self {
        let micros = now.as_micros().unsigned_abs();
        let nanos = u32::try_from(micros % 1_000_000 * 1_000).unwrap_or(0);
        Self(Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, micros / 1_000_000, nanos)))
    }

    /// The same, in one shard of `shards`.
    pub fn random_in(now: Timestamp, shard: Shard, shards: u16) -> Self {
        let mut bytes = Self::random(now).0.into_bytes();
        let (tail, shards) = (u16::from_be_bytes([bytes[14], bytes[15]]), shards.max(1));
        // The last multiple may have no number left for this shard.
        let first = (tail / shards).min((u16::MAX / shards).saturating_sub(1)) * shards;
        [bytes[14], bytes[15]] = (first + shard.0 % shards).to_be_bytes();
        Self(Uuid::from_bytes(bytes))
    }

    pub fn keyed(namespace: &Namespace, key: &Key) -> Self {
        // The length keeps ("a", "bc") and ("ab", "c") apart.
        let name = format!("{}:{}{}", namespace.as_str().len(), namespace.as_str(), key.as_str());
        Self(Uuid::new_v5(&KEYED, name.as_bytes()))
    }

    /// The id of the timer that follows the end of another in this revision.
    pub fn following(id: Self, revision: u32, kind: &str) -> Self {
        Self(Uuid::new_v5(&FOLLOWING, format!("{id}:{revision}:{kind}").as_bytes()))
    }

    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        Uuid::try_parse(text).map(Self).map_err(|_| Invalid::new(field, "must be a UUID"))
    }

    /// An id that a client chose for a new timer: a UUID of version 7, as the service makes them itself. One of another version could
    /// be the id of a key.
    pub fn parse_chosen(field: &str, text: &str) -> Result<Self, Invalid> {
        let is_chosen = |uuid: &Uuid| uuid.get_version_num() == 7 && uuid.get_variant() == uuid::Variant::RFC4122;
        // Written with hyphens and nothing else, as it comes back.
        let uuid = Uuid::try_parse(text).ok().filter(|_| text.len() == uuid::fmt::Hyphenated::LENGTH).filter(is_chosen);
        uuid.map(Self).ok_or_else(|| Invalid::new(field, "must be a UUID of version 7, written with hyphens"))
    }

    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    pub const fn as_uuid(self) -> Uuid {
        self.0
    }

    /// The id just before this one in the order of ids.
    #[must_use]
    pub const fn predecessor(self) -> Self {
        Self(Uuid::from_u128(self.0.as_u128().saturating_sub(1)))
    }

    /// The shard of this timer among `shards`: a function of the id alone, for ever.
    pub fn shard(self, shards: u16) -> Shard {
        let tail = u16::from_be_bytes([self.0.as_bytes()[14], self.0.as_bytes()[15]]);
        Shard(tail % shards.max(1))
    }
}

impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl serde::Serialize for TimerId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

/// One part of all timers; a node owns whole shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub u16);

/// Parses a text of limited length that keeps every character as it came: no folding, no trimming.
pub(crate) fn parse_text(field: &str, text: &str, chars_max: usize) -> Result<String, Invalid> {
    if text.is_empty() || text.chars().count() > chars_max {
        return Err(Invalid::new(field, format!("must have 1 to {chars_max} characters")));
    }
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(field, "must not contain control characters"));
    }
    Ok(text.to_owned())
}

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident, $field:literal, $chars_max:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub struct $name(String);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, Invalid> {
                parse_text($field, text, $chars_max).map(Self)
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_newtype!(
    /// The scope in which keys are unique: a tenant, a group, an application.
    Namespace, "namespace", limits::NAMESPACE_CHARS_MAX
);
text_newtype!(
    /// The caller's own id of a timer, unique inside its namespace.
    Key, "key", limits::KEY_CHARS_MAX
);
text_newtype!(
    /// Carried from the request to the callback and the logs.
    CorrelationId, "correlation_id", limits::CORRELATION_ID_CHARS_MAX
);

impl Namespace {
    pub const DEFAULT: &str = "default";
}

impl Default for Namespace {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(namespace: &str, key: &str) -> TimerId {
        TimerId::keyed(&Namespace::parse(namespace).unwrap(), &Key::parse(key).unwrap())
    }

    #[test]
    fn a_random_id_lies_in_the_shard_that_is_asked_for() {
        let now = Timestamp::from_micros(1_700_000_000_000_000);
        for shards in [1, 2, 3, 64, 1_000, u16::MAX] {
            for shard in [0, 1, 63, 999, u16::MAX - 1].map(Shard).into_iter().filter(|shard| shard.0 < shards) {
                let id = TimerId::random_in(now, shard, shards);
                assert_eq!(id.shard(shards), shard, "of {shards}");
                assert!(TimerId::parse_chosen("id", &id.to_string()).is_ok(), "{id}");
            }
        }
    }

    #[test]
    fn the_same_key_is_the_same_timer_and_no_other() {
        assert_eq!(keyed("a", "b"), keyed("a", "b"));
        let distinct =
            [("a", "bc"), ("ab", "c"), ("a", "b"), ("A", "b"), ("a", "b "), ("a", "é"), ("a", "e\u{301}"), ("1:a", "b")];
        for (i, left) in distinct.iter().enumerate() {
            for right in &distinct[i + 1..] {
                assert_ne!(keyed(left.0, left.1), keyed(right.0, right.1), "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn random_ids_are_in_order_of_creation() {
        let early = TimerId::random(Timestamp::from_micros(1_700_000_000_000_000));
        let late = TimerId::random(Timestamp::from_micros(1_700_000_000_001_000));
        assert!(early < late);
    }

    #[test]
    fn only_a_uuid_of_version_7_can_be_chosen() {
        for text in ["01890a5d-ac96-774b-bcce-b302099a8057", "01890A5D-AC96-774B-8CCE-B302099A8057"] {
            assert_eq!(TimerId::parse_chosen("id", text).unwrap().to_string(), text.to_lowercase());
        }
        let keyed = keyed("a", "b").to_string();
        for text in [
            "",
            "order-7",
            &keyed,
            "01890a5d-ac96-474b-bcce-b302099a8057",
            "01890a5d-ac96-774b-ccce-b302099a8057",
            "01890a5dac96774bbcceb302099a8057",
            "{01890a5d-ac96-774b-bcce-b302099a8057}",
            "urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057",
            "01890a5d-ac96-774b-bcce-b302099a8057 ",
        ] {
            let refusal = TimerId::parse_chosen("id", text).unwrap_err().to_string();
            assert_eq!(refusal, "id must be a UUID of version 7, written with hyphens", "{text}");
        }
    }

    #[test]
    fn a_shard_is_always_one_of_those_there_are() {
        for shards in [0, 1, 2, 64] {
            for n in 0..200 {
                let shard = keyed("a", &n.to_string()).shard(shards);
                assert!(shard.0 < shards.max(1));
            }
        }
    }

    #[test]
    fn texts_are_limited_but_never_changed() {
        let longest = "😀".repeat(255);
        for text in ["a", "A", " a ", "é", "e\u{301}", longest.as_str()] {
            assert_eq!(Key::parse(text).unwrap().as_str(), text);
        }
        for (text, rule) in [
            (String::new(), "key must have 1 to 255 characters"),
            ("a".repeat(256), "key must have 1 to 255 characters"),
            ("a\0b".to_owned(), "key must not contain control characters"),
            ("a\nb".to_owned(), "key must not contain control characters"),
        ] {
            assert_eq!(Key::parse(&text).unwrap_err().to_string(), rule);
        }
    }
}
