//! Values as they are written into the text of a statement: numbers, texts of harmless characters between quotes, and all else in
//! hexadecimal, so that nothing in them can be taken for SQL. Several statements fit into one round trip only as text.

use std::fmt::Write;

use sqlx::types::Uuid;

/// A value of a row, see [`rows`].
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    Null,
    Number(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Value<'_> {
    fn write(self, out: &mut String) {
        match self {
            Self::Null => out.push_str("NULL"),
            // Writing to a text cannot fail.
            Self::Number(number) => drop(write!(out, "{number}")),
            Self::Text(text) => write_text(text, out),
            Self::Bytes(bytes) => write_bytes(bytes, out),
        }
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(text: &'a Option<String>) -> Self {
        text.as_deref().into()
    }
}

/// The statement, which ends in `VALUES` and a row with a question mark for each value, with a row for each of these.
pub fn rows<'a, const VALUES: usize>(statement: &str, rows: impl Iterator<Item = [Value<'a>; VALUES]>) -> String {
    let (head, row) = statement.rsplit_once("VALUES ").unwrap_or((statement, ""));
    let mut text = format!("{head}VALUES ");
    for (number, values) in rows.enumerate() {
        if number > 0 {
            text.push_str(", ");
        }
        let mut parts = row.split('?');
        text.push_str(parts.next().unwrap_or_default());
        for (value, part) in values.into_iter().zip(parts) {
            value.write(&mut text);
            text.push_str(part);
        }
    }
    text
}

pub fn number(number: i64) -> String {
    number.to_string()
}

pub fn optional_number(value: Option<i64>) -> String {
    value.map_or_else(null, number)
}

pub fn text(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 16);
    write_text(text, &mut literal);
    literal
}

pub fn optional_text(value: Option<&str>) -> String {
    value.map_or_else(null, text)
}

pub fn id(id: Uuid) -> String {
    bytes(id.as_bytes())
}

pub fn bytes(bytes: &[u8]) -> String {
    let mut literal = String::with_capacity(bytes.len() * 2 + 3);
    write_bytes(bytes, &mut literal);
    literal
}

const CHARACTER_SET: &str = "_utf8mb4 ";

fn write_text(text: &str, out: &mut String) {
    out.push_str(CHARACTER_SET);
    if text.bytes().all(is_harmless) {
        out.push('\'');
        out.push_str(text);
        out.push('\'');
    } else {
        write_bytes(text.as_bytes(), out);
    }
}

/// Means nothing between quotes, nor to what puts statements together or translates them: that goes by blanks, brackets and `?`.
const fn is_harmless(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'\'' | b'\\' | b'?' | b';' | b'(' | b')' | b'$')
}

fn write_bytes(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    out.reserve(bytes.len() * 2 + 3);
    out.push_str("X'");
    for byte in bytes {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 0xf));
    }
    out.push('\'');
}

/// The text that [`text`] has written.
pub fn read_text(literal: &str) -> Option<String> {
    let value = literal.strip_prefix(CHARACTER_SET)?.strip_suffix('\'')?;
    if let Some(text) = value.strip_prefix('\'') {
        return Some(text.to_owned());
    }
    let digits = value.strip_prefix("X'")?;
    let byte = |start: usize| u8::from_str_radix(digits.get(start..start + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

fn null() -> String {
    "NULL".to_owned()
}

/// The statement with a value for each question mark, in their order.
pub fn placed<const VALUES: usize>(statement: &str, values: [String; VALUES]) -> String {
    let mut parts = statement.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut values = values.into_iter();
    for part in parts {
        // A statement that wants more than it is given is refused by the server.
        text.push_str(values.next().as_deref().unwrap_or("?"));
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_it_was_written() {
        for written in ["'é?", r#"[{"shard":3,"id":"0abc"}]"#, ""] {
            assert_eq!(read_text(&text(written)).as_deref(), Some(written));
        }
        assert_eq!(read_text("?"), None);
    }

    #[test]
    fn only_harmless_texts_are_written_as_they_are() {
        assert_eq!(text(r#"{"a":[1,"b/c"]}"#), r#"_utf8mb4 '{"a":[1,"b/c"]}'"#);
        for harmful in ["it's", r"a\", "a b", "a;", "what?", "f()", "$1", "é", "a\nb"] {
            assert!(text(harmful).starts_with("_utf8mb4 X'"), "{harmful}");
        }
    }

    #[test]
    fn a_row_of_values_is_repeated() {
        let written = [(1, Some("a")), (-2, None)];
        let written = written.map(|(number, text)| [Value::Number(number), text.into(), Value::Bytes(&[0x0f])]);
        let text = rows("INSERT INTO t (a, b, c, d) VALUES (?, 0, ?, ?)", written.into_iter());
        assert_eq!(text, "INSERT INTO t (a, b, c, d) VALUES (1, 0, _utf8mb4 'a', X'0f'), (-2, 0, NULL, X'0f')");
    }

    #[test]
    fn values_are_written_where_they_belong() {
        let values = [number(-7), text("'é?"), optional_text(None), id(Uuid::from_u128(0xabc))];
        let placed = placed("UPDATE t SET a = ?, b = ?, c = ? WHERE id = ?", values);
        let id = "X'00000000000000000000000000000abc'";
        assert_eq!(placed, format!("UPDATE t SET a = -7, b = _utf8mb4 X'27c3a93f', c = NULL WHERE id = {id}"));
    }
}
