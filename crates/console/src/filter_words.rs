//! A filter in words: `status:failed ns:billing key:order-* due:<1h`.

use commands::{Filter, Period};
use domain::{Bounds, Condition, Invalid, MetadataPath, Namespace, Status, Timestamp, limits, split_filter_words};

/// The conditions that there are, with an example of each.
pub(crate) const CONDITIONS: [(&str, &str); 10] = [
    ("status:", "status:failed,expired"),
    ("ns:", "ns:billing"),
    ("key:", "key:order-*"),
    ("due:", "due:<1h"),
    ("created:", "created:<24h"),
    ("dest:", "dest:api.shop.example:443"),
    ("error:", "error:timeout"),
    ("meta.", "meta.customer:42"),
    ("group:", "group:campaign-7"),
    ("corr:", "corr:req-7f3a"),
];

/// What a viewer wrote, and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FilterWords {
    /// As they were written, quotes included.
    pub(crate) words: Vec<String>,
    pub(crate) filter: Filter,
}

impl FilterWords {
    /// What the words mean at this time: `due:<1h` is another hour tomorrow.
    pub(crate) fn parse(text: &str, now: Timestamp) -> Result<Self, Invalid> {
        let words = split_filter_words(text)?;
        let mut filter = Filter::default();
        for written in &words {
            add(&mut filter, Condition::parse(written, now)?)?;
        }
        Ok(Self { words, filter })
    }

    pub(crate) fn text(&self) -> String {
        self.words.join(" ")
    }

    /// The same without one of the words.
    pub(crate) fn without(&self, at: usize) -> String {
        let rest = self.words.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, word)| word.as_str());
        rest.collect::<Vec<_>>().join(" ")
    }

    /// The namespace, where exactly one is meant.
    pub(crate) fn namespace(&self) -> Option<&Namespace> {
        match self.filter.namespaces.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// The same without those that ask about this.
    pub(crate) fn without_any(&self, name: &str) -> String {
        self.words.iter().filter(|word| !word.starts_with(name)).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// The same with one more word, in place of those that ask about the same.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        format!("{} {}", self.without_any(name), word(name, value)).trim_start().to_owned()
    }
}

/// A filter in the words that a viewer would write, so that it can be read, and opened as a list.
pub(crate) fn words_of(filter: &Filter) -> String {
    let mut words = Vec::new();
    if !filter.status.is_empty() {
        words.push(format!("status:{}", filter.status.iter().copied().map(Status::as_str).collect::<Vec<_>>().join(",")));
    }
    words.extend(filter.namespaces.iter().map(|namespace| word("ns:", namespace.as_str())));
    words.extend(filter.key.as_ref().map(|key| word("key:", key.as_str())));
    words.extend(filter.key_prefix.as_ref().map(|prefix| match word("key:", prefix) {
        // In quotes a star is a star, so the prefix stands alone there: a word without a colon is the beginning of a key.
        quoted if quoted.ends_with('"') => word("", prefix),
        plain => format!("{plain}*"),
    }));
    words.extend(filter.group.as_ref().map(|group| word("group:", group.as_str())));
    words.extend(filter.correlation_id.as_ref().map(|id| word("corr:", id.as_str())));
    words.extend(filter.destination.as_ref().map(|destination| word("dest:", destination)));
    words.extend(filter.error.as_ref().map(|error| word("error:", error)));
    for (name, period) in [("due:", filter.due), ("created:", filter.created)] {
        let end = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
        if !period.is_always() {
            words.push(format!("{name}{}..{}", end(period.from), end(period.to)));
        }
    }
    words.extend(filter.metadata.iter().map(|(path, value)| word(&format!("meta.{path}:"), value)));
    words.extend(filter.members.iter().map(|(name, value)| word(&format!("meta.{name}:"), value.trim_matches('"'))));
    words.join(" ")
}

/// A condition with this name, which includes its colon: quoted where it would be read as something else.
pub(crate) fn word(name: &str, value: &str) -> String {
    let needs_quotes =
        value.is_empty() || value.ends_with('*') || value.contains(['"', '\\', ',']) || value.contains(char::is_whitespace);
    if !needs_quotes {
        return format!("{name}{value}");
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{name}\"{escaped}\"")
}

/// All conditions hold; of one that asks for a single value the last counts.
fn add(filter: &mut Filter, condition: Condition) -> Result<(), Invalid> {
    match condition {
        Condition::Status(statuses) => statuses.into_iter().for_each(|status| add_new(&mut filter.status, status)),
        Condition::Namespace(namespace) => add_new(&mut filter.namespaces, namespace),
        Condition::Key(key) => filter.key = Some(key),
        Condition::KeyPrefix(prefix) => filter.key_prefix = Some(prefix),
        Condition::Group(group) => filter.group = Some(group),
        Condition::CorrelationId(id) => filter.correlation_id = Some(id),
        Condition::Destination(destination) => filter.destination = Some(destination),
        Condition::Error(part) => filter.error = Some(part),
        Condition::Due(bounds) => filter.due = narrowed(filter.due, bounds),
        Condition::Created(bounds) => filter.created = narrowed(filter.created, bounds),
        Condition::Metadata(path, value) => return add_metadata(filter, path, value),
    }
    Ok(())
}

fn add_new<T: PartialEq>(values: &mut Vec<T>, value: T) {
    if !values.contains(&value) {
        values.push(value);
    }
}

fn add_metadata(filter: &mut Filter, path: MetadataPath, value: String) -> Result<(), Invalid> {
    if filter.metadata.len() >= limits::METADATA_CONDITIONS_MAX {
        return Err(Invalid::new("meta", format!("must not be asked about more than {} times", limits::METADATA_CONDITIONS_MAX)));
    }
    filter.metadata.push((path, value));
    Ok(())
}

/// Both hold.
fn narrowed(Period { from, to }: Period, other: Bounds) -> Period {
    let Bounds { from, to } = Bounds { from, to }.and(other);
    Period { from, to }
}

#[cfg(test)]
mod tests {
    use domain::Key;

    use super::*;

    const NOW: &str = "2030-01-31T12:00:00Z";

    fn at(text: &str) -> Timestamp {
        Timestamp::parse("at", text).unwrap()
    }

    fn read(text: &str) -> Result<Filter, String> {
        FilterWords::parse(text, at(NOW)).map(|words| words.filter).map_err(|invalid| invalid.to_string())
    }

    fn json(text: &str) -> String {
        serde_json::to_string(&read(text).unwrap()).unwrap()
    }

    #[test]
    fn words_are_conditions() {
        for (text, expected) in [
            ("", "{}"),
            ("   ", "{}"),
            ("status:failed", r#"{"status":["failed"]}"#),
            ("status:failed,expired status:failed", r#"{"status":["failed","expired"]}"#),
            ("ns:billing ns:shop", r#"{"namespace":["billing","shop"]}"#),
            ("key:order-7", r#"{"key":"order-7"}"#),
            ("key:order-*", r#"{"key_prefix":"order-"}"#),
            (r#"key:"order-*""#, r#"{"key":"order-*"}"#),
            ("order-", r#"{"key_prefix":"order-"}"#),
            ("dest:api.shop.example:443", r#"{"destination":"api.shop.example:443"}"#),
            (r#"error:"connect timeout""#, r#"{"error":"connect timeout"}"#),
            (r#"error:"say \"no\" \\""#, r#"{"error":"say \"no\" \\"}"#),
            ("meta.customer.id:42", r#"{"metadata":{"customer.id":"42"}}"#),
            ("group:campaign-7 corr:req-1", r#"{"group":"campaign-7","correlation_id":"req-1"}"#),
            ("due:<1h", r#"{"due_to":"2030-01-31T13:00:00Z"}"#),
            ("due:>1h", r#"{"due_from":"2030-01-31T13:00:00Z"}"#),
            ("due:>1h due:<2h", r#"{"due_from":"2030-01-31T13:00:00Z","due_to":"2030-01-31T14:00:00Z"}"#),
            ("created:<1h", r#"{"created_from":"2030-01-31T11:00:00Z"}"#),
            ("created:>1h", r#"{"created_to":"2030-01-31T11:00:00Z"}"#),
            ("due:2030-02-01..2030-02-02T10:00:00Z", r#"{"due_from":"2030-02-01T00:00:00Z","due_to":"2030-02-02T10:00:00Z"}"#),
            ("due:..2030-02-01", r#"{"due_to":"2030-02-01T00:00:00Z"}"#),
            ("created:>2030-01-01", r#"{"created_from":"2030-01-01T00:00:00Z"}"#),
        ] {
            assert_eq!(json(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_named() {
        for (text, refusal) in [
            ("colour:red", "colour:red: colour: is not a condition; there are "),
            ("status:done", "status:done: status must be one of pending, "),
            ("due:soon", "due:soon: due must be such as <1h"),
            ("due:<soon", "due:<soon: due must be such as <1h"),
            ("due:2030-02-02..2030-02-01", "due:2030-02-02..2030-02-01: due must end later"),
            ("error:", "error:: error must have 1 to 1024 characters"),
            (r#"error:"open"#, "the filter has a quote that is not closed"),
            ("key:", "key:: key must"),
        ] {
            let met = read(text).unwrap_err();
            assert!(met.starts_with(refusal), "{text}: {met}");
        }
    }

    #[test]
    fn a_value_of_a_timer_becomes_a_word_that_means_it() {
        for value in ["plain", "two words", "star*", "a,b", "say \"no\"", "back\\slash", "https://a:1/?b=c", "ns:x", "ü"] {
            let words = word("key:", value);
            let filter = read(&words).unwrap_or_else(|error| panic!("{words}: {error}"));
            assert_eq!(filter.key.as_ref().map(Key::as_str), Some(value), "{words}");
        }
    }

    #[test]
    fn a_filter_becomes_words_that_mean_it() {
        for text in [
            "",
            "status:failed,expired ns:billing ns:shop key:order-7",
            r#"key:order-* group:campaign-7 corr:req-1 dest:api.shop.example:443 error:"connect timeout""#,
            "due:2030-02-01T00:00:00Z..2030-02-02T10:00:00Z created:..2030-02-01T00:00:00Z meta.customer.id:42",
            r#""two words""#,
        ] {
            let filter = read(text).unwrap();
            assert_eq!(words_of(&filter), text);
        }
    }

    #[test]
    fn words_are_added_and_taken_away() {
        let words = FilterWords::parse(r#"ns:billing error:"a b" due:<1h"#, at(NOW)).unwrap();
        assert_eq!(words.without(1), "ns:billing due:<1h");
        assert_eq!(words.with("ns:", "shop"), r#"error:"a b" due:<1h ns:shop"#);
    }
}
