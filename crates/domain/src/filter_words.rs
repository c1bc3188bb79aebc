//! A filter in words: `status:failed ns:billing key:order-* due:<1h`, as people write it in the console and in the command line.

use crate::{Invalid, Span, Status, Timestamp};

/// The conditions that there are, for help.
pub const FILTER_WORDS: &str = "status: ns: key: due: created: dest: error: meta.PATH: group: corr:";

/// What the words mean at this time, as parameters of a list: `due:<1h` is another hour tomorrow.
pub fn filter_parameters(text: &str, now: Timestamp) -> Result<Vec<(String, String)>, Invalid> {
    let mut parameters = Parameters::default();
    for written in split_filter_words(text)? {
        let word = FilterWord::of(&written);
        let refused = |invalid: Invalid| Invalid::new(format!("{written}: {}", invalid.field), invalid.rule);
        parameters.add(&word, now).map_err(refused)?;
    }
    Ok(parameters.0)
}

/// One condition of a filter in words, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterWord {
    /// Empty where nothing stands before a colon.
    pub name: String,
    pub value: String,
    /// Then it has no wildcard.
    pub is_quoted: bool,
}

#[derive(Default)]
struct Parameters(Vec<(String, String)>);

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

impl FilterWord {
    pub fn of(written: &str) -> Self {
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

impl Parameters {
    fn add(&mut self, word: &FilterWord, now: Timestamp) -> Result<(), Invalid> {
        let value = word.value.as_str();
        if value.is_empty() {
            return Err(Invalid::new(&word.name, "must not be empty"));
        }
        match word.name.as_str() {
            "" => self.set("key_prefix", value),
            "status" => {
                let known = Status::ALL.map(Status::as_str).join(", ");
                if value.split(',').any(|status| Status::parse(status).is_none()) {
                    return Err(Invalid::new("status", format!("must be one of {known}")));
                }
                self.also("status", value);
            }
            "ns" | "namespace" => self.also("namespace", value),
            "key" => match value.strip_suffix('*').filter(|prefix| !word.is_quoted && !prefix.is_empty()) {
                Some(prefix) => self.set("key_prefix", prefix),
                None => self.set("key", value),
            },
            "group" => self.set("group", value),
            "corr" | "correlation" => self.set("correlation_id", value),
            "dest" | "destination" => self.set("destination", value),
            "error" => self.set("error", value),
            "due" => self.period("due", value, now, Direction::Ahead)?,
            "created" => self.period("created", value, now, Direction::Behind)?,
            name => match name.strip_prefix("meta.").or_else(|| name.strip_prefix("metadata.")) {
                Some(path) => self.set(&format!("metadata.{path}"), value),
                None => return Err(Invalid::new(format!("{name}:"), format!("is not a condition; there are {FILTER_WORDS}"))),
            },
        }
        Ok(())
    }

    fn get(&mut self, name: &str) -> Option<&mut String> {
        self.0.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The last one counts.
    fn set(&mut self, name: &str, value: &str) {
        match self.get(name) {
            Some(known) => value.clone_into(known),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// One of several.
    fn also(&mut self, name: &str, value: &str) {
        match self.get(name) {
            Some(known) => {
                known.push(',');
                known.push_str(value);
            }
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// `<1h`, `>1h`, `FROM..TO`, `<INSTANT`, `>INSTANT`, with instants in RFC 3339 or dates.
    fn period(&mut self, field: &str, text: &str, now: Timestamp, direction: Direction) -> Result<(), Invalid> {
        let rule = || Invalid::new(field, "must be such as <1h, >2d or 2030-01-31T12:00:00Z..2030-02-01");
        if let Some((from, to)) = text.split_once("..") {
            for (end, text) in [("from", from), ("to", to)].into_iter().filter(|(_, text)| !text.is_empty()) {
                self.set(&format!("{field}_{end}"), &instant(field, text)?.to_string());
            }
            return Ok(());
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
        self.set(&format!("{field}_{}", if is_before { "to" } else { "from" }), &at.to_string());
        Ok(())
    }
}

/// Where a length of time leads to: `due:<1h` is within the next hour, `created:<1h` within the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Ahead,
    Behind,
}

fn instant(field: &str, text: &str) -> Result<Timestamp, Invalid> {
    let is_date = text.len() == 10;
    if is_date { Timestamp::parse(field, &format!("{text}T00:00:00Z")) } else { Timestamp::parse(field, text) }
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
            ("error:", "error:: error must not be empty"),
            (r#"error:"open"#, "the filter has a quote that is not closed"),
        ] {
            let met = read(text).unwrap_err();
            assert!(met.starts_with(refusal), "{text}: {met}");
        }
    }
}
