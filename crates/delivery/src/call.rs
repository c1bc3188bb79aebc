use std::{borrow::Cow, fmt::Write};

use domain::{Timer, Timestamp};

/// One attempt to deliver one timer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub timer: &'a Timer,
    /// 1 for the first.
    pub attempt: u32,
    /// When the attempt was started.
    pub at: Timestamp,
}

impl Call<'_> {
    /// What the receiver knows the timer by: the caller's own key, if it brought one.
    pub fn name(&self) -> Cow<'_, str> {
        let definition = &self.timer.definition;
        definition.key.as_ref().map_or_else(|| definition.id.to_string().into(), |key| key.as_str().into())
    }

    pub fn namespace(&self) -> Cow<'_, str> {
        in_header(self.timer.definition.namespace.as_str())
    }

    pub fn correlation_id(&self) -> Option<Cow<'_, str>> {
        self.timer.definition.correlation_id.as_ref().map(|id| in_header(id.as_str()))
    }
}

/// Text as a header may carry it: what is not visible ASCII is percent-encoded byte by byte, and so is `%` itself, which
/// makes the original recoverable.
fn in_header(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, 0x21..=0x7e) && byte != b'%';
    if text.bytes().all(is_plain) {
        return text.into();
    }
    let mut encoded = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_fits_into_a_header() {
        for (text, encoded) in [
            ("default", "default"),
            ("a/b:c~", "a/b:c~"),
            ("a b", "a%20b"),
            ("100%", "100%25"),
            ("é", "%C3%A9"),
            ("😀", "%F0%9F%98%80"),
            ("a\u{85}b", "a%C2%85b"),
        ] {
            assert_eq!(in_header(text), encoded);
        }
    }
}
