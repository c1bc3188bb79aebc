//! The values that a text names as `$0`, `$1`…, as often as it likes.
//!
//! They are written into the text, see `literal.rs`. Each search has a text of
//! its own: to prepare it would cost a round trip more, and push out the statements that are always the same.

use domain::TimerId;

use crate::literal;

#[derive(Debug, Default)]
pub struct Parameters(Vec<String>);

impl Parameters {
    pub fn number(&mut self, number: i64) -> String {
        self.push(literal::number(number))
    }

    /// Adds a text that is compared with a column of bytes.
    pub fn bytes(&mut self, text: &str) -> String {
        self.push(literal::bytes(text.as_bytes()))
    }

    pub fn id(&mut self, id: TimerId) -> String {
        self.push(literal::id(id.as_uuid()))
    }

    pub fn text(&mut self, text: &str) -> String {
        self.push(literal::text(text))
    }

    /// Gives a value that is there another text.
    pub fn set_text(&mut self, place: usize, text: &str) {
        if let Some(value) = self.0.get_mut(place) {
            *value = literal::text(text);
        }
    }

    fn push(&mut self, value: String) -> String {
        self.0.push(value);
        format!("${}", self.0.len() - 1)
    }

    /// The text with its values.
    pub fn place(&self, text: &str) -> String {
        let mut parts = text.split('$');
        let mut placed = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            match part[..digits].parse::<usize>().ok().and_then(|place| self.0.get(place)) {
                Some(value) => placed.push_str(value),
                // The root of a path. The server refuses a name that there is not.
                None => {
                    placed.push('$');
                    placed.push_str(&part[..digits]);
                }
            }
            placed.push_str(&part[digits..]);
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_where_they_are_named() {
        let mut parameters = Parameters::default();
        let (seven, quote) = (parameters.number(-7), parameters.text("'é"));
        let bytes = parameters.bytes("a' OR '1");
        assert_eq!(parameters.place(&format!("a = {quote} AND b = {seven}")), "a = _utf8mb4 X'27c3a9' AND b = -7");
        assert_eq!(parameters.place(&format!("{bytes}, {seven}, {seven}")), "X'6127204f52202731', -7, -7");
        assert_eq!(parameters.place("a path $[*]"), "a path $[*]");
        assert_eq!(parameters.place("d = $9"), "d = $9");
    }
}
