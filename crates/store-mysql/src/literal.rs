//! Values as they are written into the text of a statement: numbers, and all else in hexadecimal, so that nothing in them can be taken
//! for SQL. Several statements fit into one round trip only as text.

use std::fmt::Write;

use sqlx::types::Uuid;

pub fn number(number: i64) -> String {
    number.to_string()
}

pub fn optional_number(value: Option<i64>) -> String {
    value.map_or_else(null, number)
}

pub fn text(text: &str) -> String {
    format!("_utf8mb4 {}", bytes(text.as_bytes()))
}

pub fn optional_text(value: Option<&str>) -> String {
    value.map_or_else(null, text)
}

pub fn id(id: Uuid) -> String {
    bytes(id.as_bytes())
}

pub fn bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 3);
    text.push_str("X'");
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\'');
    text
}

/// The text that [`text`] has written.
pub fn read_text(literal: &str) -> Option<String> {
    let digits = literal.strip_prefix("_utf8mb4 X'")?.strip_suffix('\'')?;
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
        assert_eq!(read_text(&text("'é?")).as_deref(), Some("'é?"));
        assert_eq!(read_text("?"), None);
    }

    #[test]
    fn values_are_written_where_they_belong() {
        let values = [number(-7), text("'é?"), optional_text(None), id(Uuid::from_u128(0xabc))];
        let placed = placed("UPDATE t SET a = ?, b = ?, c = ? WHERE id = ?", values);
        let id = "X'00000000000000000000000000000abc'";
        assert_eq!(placed, format!("UPDATE t SET a = -7, b = _utf8mb4 X'27c3a93f', c = NULL WHERE id = {id}"));
    }
}
