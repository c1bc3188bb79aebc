//! A filter in words: `status:failed ns:billing key:order-* due:<1h`, as people write it in the console and in the command line.

use crate::{CorrelationId, Group, Invalid, Key, MetadataPath, Namespace, Span, Status, Timestamp, limits};

/// The conditions that there are, for help.
pub const FILTER_WORDS: &str = "status: ns: key: due: created: dest: error: meta.PATH: group: corr:";

/// What one word of a filter asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Any of these.
    Status(Vec<Status>),
    /// Several such words mean any of them.
    Namespace(Namespace),
    Key(Key),
    KeyPrefix(String),
    Group(Group),
    CorrelationId(CorrelationId),
    Destination(String),
    Error(String),
    Metadata(MetadataPath, String),
    Due(Bounds),
    Created(Bounds),
}

/// A span of time: from the first instant on, and before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

impl Bounds {
    /// Both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), to: [self.to, other.to].into_iter().flatten().min() }
    }
}

impl Condition {
    /// What the word means at this time: `due:<1h` is another hour tomorrow. A refusal names the word.
    pub fn parse(written: &str, now: Timestamp) -> Result<Self, Invalid> {
        let refused = |invalid: Invalid| Invalid::new(format!("{written}: {}", invalid.field), invalid.rule);
        Self::of(&FilterWord::of(written), now).map_err(refused)
    }

    fn of(word: &FilterWord, now: Timestamp) -> Result<Self, Invalid> {
        let value = word.value.as_str();
        match word.name.as_str() {
            "" => key_prefix(value),
            "status" => statuses(value),
            // A name may have a comma; several are several words.
            "ns" | "namespace" => Namespace::parse(value).map(Self::Namespace),
            "key" => match value.strip_suffix('*').filter(|_| !word.is_quoted) {
                Some(prefix) => key_prefix(prefix),
                None => Key::parse(value).map(Self::Key),
            },
            "group" => Group::parse(value).map(Self::Group),
            "corr" | "correlation" => CorrelationId::parse(value).map(Self::CorrelationId),
            "dest" | "destination" => searched("dest", value).map(Self::Destination),
            "error" => searched("error", value).map(Self::Error),
            "due" => bounds("due", value, now, Direction::Ahead).map(Self::Due),
            "created" => bounds("created", value, now, Direction::Behind).map(Self::Created),
            name => match name.strip_prefix("meta.").or_else(|| name.strip_prefix("metadata.")) {
                Some(path) => Ok(Self::Metadata(MetadataPath::parse("meta", path)?, value.to_owned())),
                None => Err(Invalid::new(format!("{name}:"), format!("is not a condition; there are {FILTER_WORDS}"))),
            },
        }
    }
}

/// What the words mean at this time, as parameters of a list.
pub fn filter_parameters(text: &str, now: Timestamp) -> Result<Vec<(String, String)>, Invalid> {
    let mut parameters = Parameters::default();
    for written in split_filter_words(text)? {
        parameters.add(Condition::parse(&written, now)?);
    }
    Ok(parameters.finished())
}

/// The words as they were written, split at blanks that are not in quotes.
pub fn split_filter_words(text: &str) -> Result<Vec<String>, Invalid> {
    let (mut words, mut word, mut is_quoted, mut chars) = (Vec::new(), String::new(), false, text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' if is_quoted => {
                word.push(c);
                word.extend(chars.next());
            }
            '"' => {
                is_quoted = !is_quoted;
                word.push(c);
            }
            c if c.is_whitespace() && !is_quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if is_quoted {
        return Err(Invalid::new("the filter", "has a quote that is not closed"));
    }
    words.extend((!word.is_empty()).then_some(word));
    Ok(words)
}

/// One condition of a filter in words, without its quotes.
struct FilterWord {
    /// Empty where nothing stands before a colon.
    name: String,
    value: String,
    /// Then it has no wildcard.
    is_quoted: bool,
}

impl FilterWord {
    fn of(written: &str) -> Self {
        let quoted_at = written.find('"').unwrap_or(written.len());
        let colon = written.find(':').filter(|colon| *colon < quoted_at);
        let (name, rest) = colon.map_or(("", written), |colon| (&written[..colon], &written[colon + 1..]));
        let (mut value, mut is_quoted, mut chars) = (String::new(), false, rest.chars());
        while let Some(c) = chars.next() {
            match c {
                '"' => is_quoted = true,
                '\\' if is_quoted => value.extend(chars.next()),
                c => value.push(c),
            }
        }
        Self { name: name.to_owned(), value, is_quoted }
    }
}

fn key_prefix(value: &str) -> Result<Condition, Invalid> {
    // The beginning of a key obeys the rules of a key.
    Key::parse(value).map(|_| Condition::KeyPrefix(value.to_owned()))
}

fn statuses(value: &str) -> Result<Condition, Invalid> {
    let known = Status::ALL.map(Status::as_str).join(", ");
    let parse = |text| Status::parse(text).ok_or_else(|| Invalid::new("status", format!("must be one of {known}")));
    value.split(',').map(parse).collect::<Result<_, _>>().map(Condition::Status)
}

fn searched(field: &str, value: &str) -> Result<String, Invalid> {
    if value.is_empty() || value.chars().count() > limits::SEARCHED_CHARS_MAX || value.contains('\0') {
        return Err(Invalid::new(field, format!("must have 1 to {} characters", limits::SEARCHED_CHARS_MAX)));
    }
    Ok(value.to_owned())
}

/// Where a length of time leads to: `due:<1h` is within the next hour, `created:<1h` within the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Ahead,
    Behind,
}

/// `<1h`, `>1h`, `FROM..TO`, `<INSTANT`, `>INSTANT`, with instants in RFC 3339 or dates.
fn bounds(field: &str, text: &str, now: Timestamp, direction: Direction) -> Result<Bounds, Invalid> {
    let rule = || Invalid::new(field, "must be such as <1h, >2d or 2030-01-31T12:00:00Z..2030-02-01");
    if let Some((from, to)) = text.split_once("..") {
        let end = |text: &str| if text.is_empty() { Ok(None) } else { instant(field, text).map(Some) };
        let bounds = Bounds { from: end(from)?, to: end(to)? };
        let is_empty = bounds.from.zip(bounds.to).is_some_and(|(from, to)| from >= to);
        return if is_empty { Err(Invalid::new(field, "must end later than it begins")) } else { Ok(bounds) };
    }
    let (is_below, text) = match (text.strip_prefix('<'), text.strip_prefix('>')) {
        (Some(text), _) => (true, text),
        (_, Some(text)) => (false, text),
        _ => return Err(rule()),
    };
    let (at, is_before) = match Span::parse(field, text) {
        Ok(span) if direction == Direction::Ahead => (now.saturating_add(span), is_below),
        Ok(span) => (now.saturating_sub(span), !is_below),
        Err(_) => (instant(field, text).map_err(|_| rule())?, is_below),
    };
    Ok(if is_before { Bounds { from: None, to: Some(at) } } else { Bounds { from: Some(at), to: None } })
}

fn instant(field: &str, text: &str) -> Result<Timestamp, Invalid> {
    let is_date = text.len() == 10;
    if is_date { Timestamp::parse(field, &format!("{text}T00:00:00Z")) } else { Timestamp::parse(field, text) }
}

/// All conditions hold; of one that asks for a single value the last counts.
#[derive(Default)]
struct Parameters {
    set: Vec<(String, String)>,
    due: Bounds,
    created: Bounds,
}

impl Parameters {
    fn add(&mut self, condition: Condition) {
        match condition {
            Condition::Status(statuses) => {
                self.also("status", &statuses.into_iter().map(Status::as_str).collect::<Vec<_>>().join(","));
            }
            Condition::Namespace(namespace) => self.also("namespace", namespace.as_str()),
            Condition::Key(key) => self.set("key", key.as_str()),
            Condition::KeyPrefix(prefix) => self.set("key_prefix", &prefix),
            Condition::Group(group) => self.set("group", group.as_str()),
            Condition::CorrelationId(id) => self.set("correlation_id", id.as_str()),
            Condition::Destination(destination) => self.set("destination", &destination),
            Condition::Error(part) => self.set("error", &part),
            Condition::Metadata(path, value) => self.set(&format!("metadata.{path}"), &value),
            Condition::Due(bounds) => self.due = self.due.and(bounds),
            Condition::Created(bounds) => self.created = self.created.and(bounds),
        }
    }

    fn finished(mut self) -> Vec<(String, String)> {
        let (due, created) = (self.due, self.created);
        for (name, at) in [("due_from", due.from), ("due_to", due.to), ("created_from", created.from), ("created_to", created.to)]
        {
            if let Some(at) = at {
                self.set(name, &at.to_string());
            }
        }
        self.set
    }

    fn get(&mut self, name: &str) -> Option<&mut String> {
        self.set.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// In place of an earlier one.
    fn set(&mut self, name: &str, value: &str) {
        match self.get(name) {
            Some(known) => value.clone_into(known),
            None => self.set.push((name.to_owned(), value.to_owned())),
        }
    }

    /// One of several.
    fn also(&mut self, name: &str, value: &str) {
        match self.get(name) {
            Some(known) => {
                known.push(',');
                known.push_str(value);
            }
            None => self.set.push((name.to_owned(), value.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let now = Timestamp::parse("now", "2030-01-31T12:00:00Z").unwrap();
        let parameters = filter_parameters(text, now).map_err(|invalid| invalid.to_string())?;
        Ok(parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&"))
    }

    #[test]
    fn words_are_conditions() {
        for (text, expected) in [
            ("", ""),
            ("   ", ""),
            ("status:failed,expired status:paused", "status=failed,expired,paused"),
            ("ns:billing ns:shop", "namespace=billing,shop"),
            ("key:order-7", "key=order-7"),
            ("key:order-*", "key_prefix=order-"),
            (r#"key:"order-*""#, "key=order-*"),
            ("order-", "key_prefix=order-"),
            ("dest:api.shop.example:443", "destination=api.shop.example:443"),
            (r#"error:"connect timeout""#, "error=connect timeout"),
            (r#"error:"say \"no\" \\""#, r#"error=say "no" \"#),
            ("meta.customer.id:42", "metadata.customer.id=42"),
            ("group:campaign-7 corr:req-1", "group=campaign-7&correlation_id=req-1"),
            ("due:<1h", "due_to=2030-01-31T13:00:00Z"),
            ("due:>1h due:<2h", "due_from=2030-01-31T13:00:00Z&due_to=2030-01-31T14:00:00Z"),
            ("due:<3h due:<2h", "due_to=2030-01-31T14:00:00Z"),
            ("created:<1h", "created_from=2030-01-31T11:00:00Z"),
            ("created:>1h", "created_to=2030-01-31T11:00:00Z"),
            ("due:2030-02-01..2030-02-02T10:00:00Z", "due_from=2030-02-01T00:00:00Z&due_to=2030-02-02T10:00:00Z"),
            ("due:..2030-02-01", "due_to=2030-02-01T00:00:00Z"),
            ("created:>2030-01-01", "created_from=2030-01-01T00:00:00Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_named() {
        for (text, refusal) in [
            ("colour:red", "colour:red: colour: is not a condition; there are "),
            ("status:done", "status:done: status must be one of pending, "),
            ("due:soon", "due:soon: due must be such as <1h"),
            ("due:<soon", "due:<soon: due must be such as <1h"),
            ("error:", "error:: error must have 1 to 1024 characters"),
            ("due:2030-02-02..2030-02-01", "due:2030-02-02..2030-02-01: due must end later"),
            ("key:", "key:: key must"),
            (r#"error:"open"#, "the filter has a quote that is not closed"),
        ] {
            let met = read(text).unwrap_err();
            assert!(met.starts_with(refusal), "{text}: {met}");
        }
    }
}
