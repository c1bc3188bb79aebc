//! Value parsers: what the text of one setting means, and the rule that a bad one breaks. Also what settings that name the same
//! thing may not be together.

use std::{ffi::OsStr, fmt, ops::RangeInclusive, str::FromStr, sync::Arc};

use clap::{
    Arg, Command,
    builder::{PossibleValue, TypedValueParser},
    error::{ContextKind, ContextValue, ErrorKind},
};
use domain::{Invalid, Span};

/// Reads the text of one setting. A bad one is refused with a sentence of two parts, the name of the setting and the rule; the
/// text itself may be a secret and is not in it.
#[derive(Clone)]
pub struct Setting<T> {
    parse: Arc<Parse<T>>,
    choices: &'static [&'static str],
}

/// From the name of a setting and its text to its value.
type Parse<T> = dyn Fn(&str, &str) -> Result<T, Invalid> + Send + Sync;

impl<T: Clone + Send + Sync + 'static> Setting<T> {
    /// A setting that `parse` reads, given its name and its text.
    pub fn new(parse: impl Fn(&str, &str) -> Result<T, Invalid> + Send + Sync + 'static) -> Self {
        Self { parse: Arc::new(parse), choices: &[] }
    }

    /// The same, refused only where its value is used.
    pub fn deferred(self) -> Setting<Deferred<T>> {
        Setting::new(move |setting, text| Ok(Deferred((self.parse)(setting, text))))
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Setting<T> {
    type Value = T;

    fn parse_ref(&self, _command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let setting = arg.map(name_of).unwrap_or_default();
        let text = value.to_str().ok_or_else(|| Invalid::new(&setting, "must be valid UTF-8"));
        text.and_then(|text| (self.parse)(&setting, text)).map_err(|invalid| error_of(&invalid))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        if self.choices.is_empty() {
            return None;
        }
        Some(Box::new(self.choices.iter().copied().map(PossibleValue::new)))
    }
}

/// The environment variable of a setting, which is its name in messages, or the flag of an option that has none.
fn name_of(arg: &Arg) -> String {
    let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
    variable.unwrap_or_else(|| format!("--{}", arg.get_long().unwrap_or_else(|| arg.get_id().as_str())))
}

fn error_of(invalid: &Invalid) -> clap::Error {
    let mut error = clap::Error::new(ErrorKind::ValueValidation);
    error.insert(ContextKind::Custom, ContextValue::String(format!("{invalid}.")));
    error
}

/// The sentence of a [`Setting`] that refused its text; `None` for an error that clap made itself.
pub fn sentence_of(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::Custom) {
        Some(ContextValue::String(sentence)) => Some(sentence),
        _ => None,
    }
}

/// A value whose rule is checked where it is used. Some variables are set by the environment without regard to this service, such
/// as `NATS_PORT=tcp://…` by Kubernetes for a service named nats; they matter only where their host is named, too.
#[derive(Debug, Clone)]
pub struct Deferred<T>(Result<T, Invalid>);

impl<T: Clone> Deferred<T> {
    pub fn get(&self) -> Result<T, Invalid> {
        self.0.clone()
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the code that sends it or compares with it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Any text, which is never shown.
pub fn secret() -> Setting<Secret> {
    Setting::new(|_, text| Ok(Secret::new(text.to_owned())))
}

/// A number within the range.
pub fn number<N>(range: RangeInclusive<N>) -> Setting<N>
where
    N: FromStr + PartialOrd + fmt::Display + Clone + Send + Sync + 'static,
{
    Setting::new(move |setting, text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(Invalid::new(setting, format!("must be a number between {} and {}", range.start(), range.end()))),
    })
}

/// A length of time such as `90s`.
pub fn duration() -> Setting<Span> {
    Setting::new(Span::parse)
}

/// One of a few words, which `parse` knows.
pub fn choice<T: Clone + Send + Sync + 'static>(
    choices: &'static [&'static str],
    parse: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
) -> Setting<T> {
    let parse = move |setting: &str, text: &str| {
        parse(text.trim()).ok_or_else(|| Invalid::new(setting, format!("must be {}", alternatives(choices))))
    };
    Setting { choices, ..Setting::new(parse) }
}

/// Joins as an enumeration: `a, b or c`.
pub fn alternatives(items: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for (n, item) in items.iter().enumerate() {
        text.push_str(match n {
            0 => "",
            n if n + 1 == items.len() => " or ",
            _ => ", ",
        });
        text.push_str(item.as_ref());
    }
    text
}

/// Of several settings that name one thing, the one that is set. Two would leave open which is meant.
pub fn refuse_two(settings: impl IntoIterator<Item = (&'static str, bool)>) -> Result<Option<&'static str>, Invalid> {
    let mut set = settings.into_iter().filter_map(|(setting, is_set)| is_set.then_some(setting));
    match (set.next(), set.next()) {
        (Some(first), Some(second)) => Err(Invalid::new(first, format!("and {second} are both set: give only one of them"))),
        (one, _) => Ok(one),
    }
}

/// Refuses parts of an address where its host is not named: they would be ignored.
pub fn refuse_parts_without(host: &str, parts: impl IntoIterator<Item = (&'static str, bool)>) -> Result<(), Invalid> {
    match parts.into_iter().find(|(_, is_set)| *is_set) {
        Some((part, _)) => Err(Invalid::new(part, format!("is set, but {host} is not: say where the server is"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_read_as_an_enumeration() {
        for (items, text) in [(&["a"][..], "a"), (&["a", "b"], "a or b"), (&["a", "b", "c"], "a, b or c")] {
            assert_eq!(alternatives(items), text);
        }
    }

    #[test]
    fn a_secret_is_not_shown_for_debugging() {
        assert_eq!(format!("{:?}", Secret::new("Tr0ub4dor".to_owned())), "Secret(…)");
    }
}
