//! The members of a callback's JSON object, whatever its kind, before they are understood.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{CallbackKind, kind::KindSet};
use crate::{Headers, Invalid, JsonText, StringMembers, checked_json::Members, json::string_in_checked, limits, read_object_in};

/// Where a text comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// From a client.
    None,
    /// From a store, into which nothing goes unchecked.
    Stored,
}

const TYPE: &str = "type";
const HEADERS: &str = "headers";
const PAYLOAD: &str = "payload";

/// Every field that a callback can have, and the kinds that have it. The kinds' own come first, in the order of the kinds: of several
/// that do not belong to a callback, the first of this list is refused.
const FIELDS: [(&str, KindSet); FIELDS_COUNT] = MERGED.first();
const NAMES: [&str; FIELDS_COUNT] = {
    let mut names = [""; FIELDS_COUNT];
    let mut at = 0;
    while at < FIELDS_COUNT {
        names[at] = FIELDS[at].0;
        at += 1;
    }
    names
};

const FIELDS_COUNT: usize = MERGED.count;
const MERGED: Merged<FIELDS_COUNT_MAX> = fields();

/// The number of fields that there would be if no two kinds had a field of the same name.
const FIELDS_COUNT_MAX: usize = {
    let (mut count, mut at) = (3, 0);
    while at < CallbackKind::ALL.len() {
        count += CallbackKind::ALL[at].info().fields.len();
        at += 1;
    }
    count
};

const fn fields() -> Merged<FIELDS_COUNT_MAX> {
    let mut fields = Merged::EMPTY;
    let (mut all, mut with_content) = (KindSet::EMPTY, KindSet::EMPTY);
    let mut at = 0;
    while at < CallbackKind::ALL.len() {
        let kind = CallbackKind::ALL[at];
        let set = KindSet::EMPTY.with(kind);
        fields = fields.with_all(kind.info().fields, set);
        all = all.union(set);
        if kind.info().content.is_some() {
            with_content = with_content.union(set);
        }
        at += 1;
    }
    fields.with_all(&[HEADERS, PAYLOAD], with_content).with_all(&[TYPE], all)
}

/// Fields and the kinds that have them. A name that several kinds have is one field, which belongs to all of them.
#[derive(Clone, Copy)]
struct Merged<const MAX: usize> {
    fields: [(&'static str, KindSet); MAX],
    count: usize,
}

impl<const MAX: usize> Merged<MAX> {
    const EMPTY: Self = Self { fields: [("", KindSet::EMPTY); MAX], count: 0 };

    const fn with_all(mut self, mut names: &[&'static str], kinds: KindSet) -> Self {
        while let [name, rest @ ..] = names {
            let at = self.position(name);
            self.fields[at] = (*name, self.fields[at].1.union(kinds));
            if at == self.count {
                self.count += 1;
            }
            names = rest;
        }
        self
    }

    /// Where the field of this name is, or where it is to be added.
    const fn position(&self, name: &str) -> usize {
        let mut at = 0;
        while at < self.count && !is_same(self.fields[at].0.as_bytes(), name.as_bytes()) {
            at += 1;
        }
        at
    }

    const fn first<const COUNT: usize>(&self) -> [(&'static str, KindSet); COUNT] {
        let mut fields = [("", KindSet::EMPTY); COUNT];
        let mut at = 0;
        while at < COUNT {
            fields[at] = self.fields[at];
            at += 1;
        }
        fields
    }
}

/// What `==` says, which cannot be used in constants yet.
const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, rest @ ..], [other_first, other_rest @ ..]) = (one, other) {
        if *first != *other_first {
            return false;
        }
        (one, other) = (rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

/// The values that are given, in the order of [`FIELDS`]. They stay text, because the payload must be kept as it is.
#[derive(Debug, PartialEq)]
pub(super) struct Fields<'a>([Option<&'a str>; FIELDS_COUNT]);

impl<'a> Fields<'a> {
    /// Reads the object that `text` must be, which was checked to be JSON.
    pub fn of_checked(text: &'a str) -> Result<Self, Invalid> {
        Self::walk(text).map_or_else(|| read_object_in("callback", text), Ok)
    }

    /// The fields of an object that has no other names, none twice, and none written with escapes. `None` for what needs a closer look.
    fn walk(text: &'a str) -> Option<Self> {
        let mut values = [None; FIELDS_COUNT];
        let mut members = Members::of(text.trim_ascii())?;
        for (name, value) in &mut members {
            let name = name.strip_prefix('"')?.strip_suffix('"')?;
            let at = NAMES.iter().position(|known| *known == name)?;
            if values[at].replace(value).is_some() {
                return None;
            }
        }
        (members.rest() == "}").then_some(Self(values))
    }

    /// The kind that is named, if it has all the fields that are given: one of another kind would be ignored.
    pub fn kind(&self) -> Result<CallbackKind, Invalid> {
        let rule = |rule: &str| Invalid::new(TYPE, format!("{rule} {}", KindSet::REQUESTABLE));
        let name = self.string(TYPE)?.ok_or_else(|| rule("is required:"))?;
        let kind = CallbackKind::named(&name).ok_or_else(|| rule("must be"))?;
        for (at, (name, kinds)) in FIELDS.iter().enumerate() {
            if !kinds.contains(kind) && self.at(at).is_some() {
                return Err(Invalid::new(*name, format!("does not belong to a callback of type {kind}")));
            }
        }
        Ok(kind)
    }

    /// The value of a field, which must be among [`FIELDS`].
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.at(NAMES.iter().position(|known| *known == name)?)
    }

    fn at(&self, at: usize) -> Option<&'a str> {
        // `null` says the same as nothing at all, except that a payload of `null` is sent as `null`.
        self.0[at].filter(|text| *text != "null" || NAMES[at] == PAYLOAD)
    }

    pub fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, Invalid> {
        let string = |text| string_in_checked(text).ok_or_else(|| Invalid::new(name, "must be a string"));
        self.text(name).map(string).transpose()
    }

    pub fn required_string(&self, name: &str) -> Result<Cow<'a, str>, Invalid> {
        self.string(name)?.ok_or_else(|| Invalid::new(name, "is required"))
    }

    /// Headers and payload.
    pub fn content(&self, trust: Trust) -> Result<(Headers, Option<JsonText>), Invalid> {
        let headers = self.text(HEADERS).map(pairs_of_strings).transpose()?.unwrap_or_default();
        let headers = Headers::parse(headers)?;
        let payload = self.text(PAYLOAD).map(|text| match trust {
            Trust::None => JsonText::of_checked(PAYLOAD, text, limits::PAYLOAD_BYTES_MAX),
            Trust::Stored => Ok(JsonText::trusted(text)),
        });
        Ok((headers, payload.transpose()?))
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Fields<'de>, A::Error> {
                let mut values = [None; FIELDS_COUNT];
                while let Some(Position(at)) = members.next_key()? {
                    if values[at].replace(members.next_value::<&RawValue>()?.get()).is_some() {
                        return Err(de::Error::duplicate_field(NAMES[at]));
                    }
                }
                Ok(Fields(values))
            }
        }

        deserializer.deserialize_struct("Callback", &NAMES, Members)
    }
}

/// The position of a name among [`FIELDS`].
struct Position(usize);

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = Position;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Position, E> {
                let at = NAMES.iter().position(|known| *known == name);
                at.map(Position).ok_or_else(|| E::unknown_field(name, &NAMES))
            }
        }

        deserializer.deserialize_identifier(Name)
    }
}

/// The members of an object of strings, in their order.
fn pairs_of_strings(text: &str) -> Result<Vec<(String, String)>, Invalid> {
    let StringMembers(pairs) = serde_json::from_str(text).map_err(|_| Invalid::new(HEADERS, "must be an object of strings"))?;
    let string = |(name, value): (String, Option<String>)| match value {
        Some(value) => Ok((name, value)),
        None => Err(Invalid::new(format!("{HEADERS}.{name}"), "must be a string")),
    };
    pairs.into_iter().map(string).collect()
}

#[cfg(test)]
mod tests {
    use super::{CallbackKind::*, *};

    #[test]
    fn a_field_of_several_kinds_belongs_to_all_of_them() {
        let (http, nats) = (KindSet::EMPTY.with(Http), KindSet::EMPTY.with(Nats));
        let merged = Merged::<6>::EMPTY.with_all(&["topic", "key", "jetstream"], nats).with_all(&["top", "key", "topic"], http);
        let both = http.with(Nats);
        assert_eq!((merged.count, merged.first()), (4, [("topic", both), ("key", both), ("jetstream", nats), ("top", http)]));
    }

    #[test]
    fn every_field_is_listed_once() {
        for (at, name) in NAMES.iter().enumerate() {
            assert!(!name.is_empty() && !NAMES[..at].contains(name), "{name}");
        }
    }

    #[test]
    fn fields_are_the_same_whether_the_text_is_walked_or_parsed() {
        let payload = r#"{"a":["}",{"b":"\""}],"url":"\"x\""}"#;
        for text in [
            "{}".to_owned(),
            r#"{"type":"event"}"#.to_owned(),
            format!(r#" {{ "type" : "http" ,"payload":{payload} , "url":"http://a\u002f\"" }} "#),
            r#"{"payload":null,"headers":{"A":"b"},"timeout":"5s","type":7,"jetstream":true}"#.to_owned(),
            r#"{"payload":-1.5e3,"key":[]}"#.to_owned(),
        ] {
            let parsed: Fields<'_> = serde_json::from_str(&text).unwrap();
            assert_eq!(Fields::walk(&text), Some(parsed), "{text}");
        }
        for text in
            ["[]", "7", r#"{"uri":"a"}"#, r#"{"url":"a","url":"b"}"#, r#"{"ur\u006c":"a"}"#, r#"{"url":"a""#, r#"{"url":"a"}}"#]
        {
            assert_eq!(Fields::walk(text), None, "{text}");
        }
    }
}
