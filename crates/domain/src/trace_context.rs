use std::{borrow::Cow, fmt::Write, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The headers of W3C Trace Context.
pub const TRACEPARENT: &str = "traceparent";
pub const TRACESTATE: &str = "tracestate";

/// How much vendors may add to a trace context and still have it passed on: what every participant of a trace must allow.
const STATE_BYTES_MAX: usize = 512;
/// `00-`, a trace id, a span id and two digits of flags, with dashes between.
const PARENT_CHARS: usize = 55;

/// A span and the trace that it belongs to, as `traceparent` and `tracestate` carry it between services (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub flags: u8,
    state: Option<Box<str>>,
}

impl TraceContext {
    pub const fn new(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) -> Self {
        Self { trace_id, span_id, flags, state: None }
    }

    /// Reads a `traceparent`. One that breaks the rules says nothing: a request is never refused for it.
    pub fn parse(parent: &str) -> Option<Self> {
        let bytes = parent.as_bytes();
        let version = lower_hex::<1>(bytes.get(..2)?)?;
        let is_long_enough = match version {
            [0] => bytes.len() == PARENT_CHARS,
            // Not to be used, by the standard.
            [0xff] => false,
            // Later versions may add to it, and must keep what is here.
            _ => bytes.len() == PARENT_CHARS || bytes.get(PARENT_CHARS) == Some(&b'-'),
        };
        if !is_long_enough || [2, 35, 52].iter().any(|at| bytes[*at] != b'-') {
            return None;
        }
        let (trace_id, span_id) = (lower_hex::<16>(&bytes[3..35])?, lower_hex::<8>(&bytes[36..52])?);
        let [flags] = lower_hex::<1>(&bytes[53..55])?;
        (trace_id != [0; 16] && span_id != [0; 8]).then(|| Self::new(trace_id, span_id, flags))
    }

    /// The same with a `tracestate`. One that is too long or no plain text is left out, which the standard allows.
    #[must_use]
    pub fn with_state(mut self, state: &str) -> Self {
        let is_plain = state.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
        self.state = (!state.is_empty() && state.len() <= STATE_BYTES_MAX && is_plain).then(|| state.into());
        self
    }

    /// The text of the header `traceparent`.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace_id_text(), self.span_id_text(), self.flags)
    }

    /// The text of the header `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The id of the trace as logs and tools show it.
    pub fn trace_id_text(&self) -> String {
        hex(&self.trace_id)
    }

    pub fn span_id_text(&self) -> String {
        hex(&self.span_id)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Bytes from twice as many digits, of which none may be a capital.
fn lower_hex<const BYTES: usize>(digits: &[u8]) -> Option<[u8; BYTES]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

/// As it is stored with a timer.
pub(crate) mod stored {
    use super::{Arc, Cow, Deserialize, Deserializer, Serialize, Serializer, TraceContext};

    #[derive(Serialize, Deserialize)]
    struct Stored<'a> {
        #[serde(borrow)]
        parent: Cow<'a, str>,
        #[serde(borrow, skip_serializing_if = "Option::is_none")]
        state: Option<Cow<'a, str>>,
    }

    #[expect(clippy::ref_option, reason = "serde passes the field as it is")]
    pub fn serialize<S: Serializer>(context: &Option<Arc<TraceContext>>, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = |context: &Arc<TraceContext>| Stored {
            parent: context.traceparent().into(),
            state: context.tracestate().map(|state| state.to_owned().into()),
        };
        context.as_ref().map(stored).serialize(serializer)
    }

    /// A context that cannot be read is none: no timer is held up for it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<TraceContext>>, D::Error> {
        let Some(Stored { parent, state }) = Option::<Stored<'_>>::deserialize(deserializer)? else { return Ok(None) };
        let context = TraceContext::parse(&parent).map(|context| context.with_state(state.as_deref().unwrap_or_default()));
        Ok(context.map(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_written_as_it_was_read() {
        let context = TraceContext::parse(PARENT).unwrap().with_state("vendor=1,other=x y");
        assert_eq!((context.traceparent().as_str(), context.tracestate()), (PARENT, Some("vendor=1,other=x y")));
        assert_eq!(context.trace_id_text(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!((context.span_id_text().as_str(), context.flags), ("00f067aa0ba902b7", 1));
    }

    #[test]
    fn a_later_version_is_understood_as_far_as_it_is_known() {
        for later in [PARENT.replacen("00", "01", 1), format!("{}-more", PARENT.replacen("00", "cc", 1))] {
            assert_eq!(TraceContext::parse(&later), TraceContext::parse(PARENT), "{later}");
        }
    }

    #[test]
    fn what_breaks_the_rules_is_no_context() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
            "00-4bf92f3577b34da6a3ce929d0e0e47é6-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_state_that_cannot_be_passed_on_is_left_out() {
        let context = TraceContext::parse(PARENT).unwrap();
        for state in ["", "é=1", "a=1\r\nx: y", &"a".repeat(513)] {
            assert_eq!(context.clone().with_state(state).tracestate(), None, "{state}");
        }
    }
}
