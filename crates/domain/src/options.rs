use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Callback, Expiry, Invalid, Span, TraceContext};

/// What a definition says that no query asks for: stores keep it as one text, so that a new field of a timer needs neither a column nor
/// a migration.
///
/// A field that joins has a default, is left out of the text where it has it, and takes part in the
/// [`Fingerprint`](crate::Fingerprint) by its version: the pattern there stops compiling. Stores pass options through whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Expiry>,
    /// For how long from its registration the timer may be postponed.
    #[serde(skip_serializing_if = "Option::is_none", with = "micros")]
    pub postpone_max: Option<Span>,
    /// Who is told when the timer has completed.
    #[serde(skip_serializing_if = "Option::is_none", with = "callback")]
    pub on_success: Option<Box<Callback>>,
    /// Who is told when the timer has failed or expired.
    #[serde(skip_serializing_if = "Option::is_none", with = "callback")]
    pub on_failure: Option<Box<Callback>>,
    /// The trace in which the timer was created, if its client said so or the service records traces. It is no part of the fingerprint:
    /// a request that is repeated belongs to another span.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::trace_context::stored")]
    pub trace: Option<Arc<TraceContext>>,
}

/// A callback as stores keep it.
mod callback {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
    use serde_json::value::RawValue;

    use crate::Callback;

    #[expect(clippy::ref_option, reason = "serde passes the field as it is")]
    pub fn serialize<S: Serializer>(callback: &Option<Box<Callback>>, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = callback.as_ref().map(|callback| RawValue::from_string(callback.to_stored())).transpose();
        stored.map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Callback>>, D::Error> {
        let raw = Option::<&RawValue>::deserialize(deserializer)?;
        raw.map(|raw| Callback::from_stored(raw.get()).map(Box::new).map_err(de::Error::custom)).transpose()
    }
}

/// A span as the number of its microseconds.
mod micros {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Span;

    #[expect(clippy::ref_option, reason = "serde passes the field as it is")]
    pub fn serialize<S: Serializer>(span: &Option<Span>, serializer: S) -> Result<S::Ok, S::Error> {
        span.map(Span::as_micros).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(Span::from_micros_clamped))
    }
}

/// The latest version that this program understands. It rises when a field joins that a program of the version before must not ignore;
/// fields that it may ignore leave it as it is. What is written has the lowest version that its fields need, because a program that
/// does not know the version lets the timer fail.
///
/// 2: a program that does not know of an expiry would call after it, and would tell no end.
const VERSION: u32 = 2;

impl Options {
    /// The text that is stored, with that of the requested time if there is one. Most timers have none: everything has its default.
    pub fn to_stored(&self, asked: Option<String>) -> Option<String> {
        to_stored(self, self.version(), asked)
    }

    /// The lowest version whose programs may act on a timer with these options.
    const fn version(&self) -> u32 {
        let Self { expiry, postpone_max: _, on_success, on_failure, trace: _ } = self;
        if expiry.is_some() || on_success.is_some() || on_failure.is_some() { 2 } else { 1 }
    }

    /// Understands what this version and those before it have written.
    pub fn from_stored(text: Option<&str>) -> Result<(Self, Option<String>), Invalid> {
        from_stored(text)
    }
}

/// Written by hand: the text of a callback is kept as it is, which serde does not do inside a flattened struct. Options and texts are
/// plain values: nothing in here can fail to be written.
fn to_stored<O: Default + PartialEq + Serialize>(options: &O, version: u32, asked: Option<String>) -> Option<String> {
    if asked.is_none() && *options == O::default() {
        return None;
    }
    let mut stored = format!(r#"{{"version":{version}"#);
    if let Some(asked) = asked {
        stored.push_str(r#","asked":"#);
        stored.push_str(&serde_json::to_string(&asked).unwrap_or_default());
    }
    let members = serde_json::to_string(options).unwrap_or_default();
    let members = members.strip_prefix('{').unwrap_or_default();
    if members != "}" {
        stored.push(',');
    }
    stored.push_str(members);
    Some(stored)
}

fn from_stored<O: Default + for<'a> Deserialize<'a>>(text: Option<&str>) -> Result<(O, Option<String>), Invalid> {
    #[derive(Deserialize)]
    struct Written {
        version: u32,
        asked: Option<String>,
    }

    let Some(text) = text else { return Ok((O::default(), None)) };
    let unreadable = |error: serde_json::Error| Invalid::new("options", format!("cannot be read: {error}"));
    let Written { version, asked } = serde_json::from_str(text).map_err(unreadable)?;
    if version > VERSION {
        return Err(Invalid::new("options", format!("have version {version}, and this program knows only up to {VERSION}")));
    }
    serde_json::from_str(text).map(|options| (options, asked)).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// As options will look once there are more.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Later {
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        quiet: bool,
    }

    #[test]
    fn defaults_are_not_stored() {
        assert_eq!(Options::default().to_stored(None), None);
        assert_eq!(Options::from_stored(None).unwrap(), (Options::default(), None));
        assert_eq!(to_stored(&Later::default(), 1, None), None);
    }

    #[test]
    fn options_read_back_as_they_are_written() {
        let later = Later { label: Some("é".to_owned()), quiet: false };
        let stored = to_stored(&later, 2, None).unwrap();
        assert_eq!(stored, r#"{"version":2,"label":"é"}"#);
        assert_eq!(from_stored(Some(&stored)).unwrap(), (later, None));
    }

    #[test]
    fn the_text_of_a_requested_time_is_stored_beside_options_and_without_any() {
        let text = || Some("0 9 * * MON".to_owned());
        for later in [Later::default(), Later { label: None, quiet: true }] {
            let stored = to_stored(&later, 2, text()).unwrap();
            assert!(stored.starts_with(r#"{"version":2,"asked":"0 9 * * MON""#), "{stored}");
            assert_eq!(from_stored(Some(&stored)).unwrap(), (later, text()));
        }
    }

    #[test]
    fn every_option_reads_back_as_it_is_written() {
        let callback = |host: &str| {
            let json = format!(r#"{{"type":"http","url":"http://{host}/","payload":{{"n": 1.10}}}}"#);
            Some(Box::new(Callback::from_json(&json).unwrap()))
        };
        let options = Options {
            expiry: Some(Expiry::After(Span::from_secs(90))),
            postpone_max: Some(Span::from_micros(7)),
            on_success: callback("s"),
            on_failure: callback("f"),
            trace: Some(Arc::new(TraceContext::parse(TRACED).unwrap().with_state("vendor=1"))),
        };
        let stored = options.to_stored(None).unwrap();
        assert!(
            stored.starts_with(r#"{"version":2,"expiry":-90000001,"postpone_max":7,"on_success":{"type":"http","#),
            "{stored}"
        );
        assert!(stored.contains(r#"{"n": 1.10}"#), "{stored}");
        assert!(stored.ends_with(&format!(r#""trace":{{"parent":"{TRACED}","state":"vendor=1"}}}}"#)), "{stored}");
        assert_eq!(Options::from_stored(Some(&stored)).unwrap(), (options, None));
    }

    #[test]
    fn a_callback_is_stored_without_its_defaults_and_read_with_and_without_them() {
        let on_success = || Some(Box::new(Callback::from_json(r#"{"type":"http","url":"http://a/"}"#).unwrap()));
        let options = Options { on_success: on_success(), ..Options::default() };
        let stored = r#"{"version":2,"on_success":{"type":"http","url":"http://a/"}}"#;
        assert_eq!(options.to_stored(None).as_deref(), Some(stored));
        let earlier = r#"{"version":2,"on_success":{"type":"http","url":"http://a/","timeout":"30s","protocol":"webhook"}}"#;
        for text in [stored, earlier] {
            assert_eq!(Options::from_stored(Some(text)).unwrap().0, options, "{text}");
        }
    }

    #[test]
    fn a_trace_that_cannot_be_read_holds_up_no_timer() {
        let stored = r#"{"version":1,"trace":{"parent":"99"}}"#;
        assert_eq!(Options::from_stored(Some(stored)).unwrap(), (Options::default(), None));
    }

    #[test]
    fn the_version_is_the_lowest_that_the_options_need() {
        let written = |options: Options, asked: Option<&str>| {
            let stored = options.to_stored(asked.map(str::to_owned)).unwrap();
            stored.chars().find(char::is_ascii_digit)
        };
        let callback = || Some(Box::new(Callback::from_json(r#"{"type":"http","url":"http://a/"}"#).unwrap()));
        let none = Options::default;
        assert_eq!(written(none(), Some("0 9 * * MON")), Some('1'));
        assert_eq!(written(Options { postpone_max: Some(Span::from_secs(1)), ..none() }, None), Some('1'));
        let trace = TraceContext::parse(TRACED).map(Arc::new);
        assert_eq!(written(Options { trace, ..none() }, None), Some('1'));
        for options in [
            Options { expiry: Some(Expiry::After(Span::from_secs(1))), ..none() },
            Options { on_success: callback(), ..none() },
            Options { on_failure: callback(), ..none() },
        ] {
            assert_eq!(written(options, None), Some('2'));
        }
    }

    #[test]
    fn what_another_version_wrote_is_understood_or_refused() {
        // By one before, and by one after whose fields may be ignored.
        assert_eq!(from_stored(Some(r#"{"version":1}"#)).unwrap(), (Later::default(), None));
        assert_eq!(Options::from_stored(Some(r#"{"version":1,"label":"a"}"#)).unwrap(), (Options::default(), None));
        for text in [r#"{"version":3}"#, "{}", "", "null", r#"{"version":-1}"#] {
            assert!(Options::from_stored(Some(text)).is_err(), "{text}");
        }
    }
}
