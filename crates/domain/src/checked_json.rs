//! JSON that was checked before, with the request that brought it or when it was stored. It is walked along its quotes and brackets, which
//! costs a fraction of what a parser takes that checks every byte.

use crate::json::string_bytes;

/// The members of an object: each name as it is written, in its quotes, with the text of its value.
pub struct Members<'a>(&'a str);

impl<'a> Members<'a> {
    /// Begins with the first member of the object with which `json` begins.
    pub fn of(json: &'a str) -> Option<Self> {
        json.strip_prefix('{').map(|rest| Self(rest.trim_ascii_start()))
    }

    /// What follows the members that were taken: the closing bracket, once these were all members of a whole object.
    pub const fn rest(&self) -> &'a str {
        self.0
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        if !self.0.starts_with('"') {
            return None;
        }
        let (quoted, after) = self.0.split_at_checked(value_bytes(self.0))?;
        let value = after.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
        let (value, after) = value.split_at_checked(value_bytes(value))?;
        self.0 = next_item(after);
        Some((quoted, value))
    }
}

/// What follows the comma after an item, if there is one.
pub fn next_item(rest: &str) -> &str {
    let rest = rest.trim_ascii_start();
    rest.strip_prefix(',').map_or(rest, str::trim_ascii_start)
}

/// The length of the JSON value with which `json` begins; at least one byte, so that text that is no JSON is passed over too.
pub fn value_bytes(json: &str) -> usize {
    let bytes = json.as_bytes();
    let length = match bytes.first() {
        Some(b'"') => string_bytes(bytes),
        Some(b'{' | b'[') => container_bytes(bytes),
        _ => bytes.iter().position(|byte| b",:]} \t\n\r\"[{".contains(byte)).unwrap_or(bytes.len()).max(1),
    };
    length.min(bytes.len())
}

/// The length of the object or array with which `bytes` begins. Its strings are passed over by their quotes, all of which are found in
/// one pass.
fn container_bytes(bytes: &[u8]) -> usize {
    let mut marks = memchr::memchr2_iter(b'"', b'\\', bytes);
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let string = marks.next();
        let between = bytes.get(at..string.unwrap_or(bytes.len())).unwrap_or_default();
        for (passed, byte) in between.iter().enumerate() {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => return at + passed + 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        let end = string.and_then(|_| end_of_string(bytes, &mut marks));
        let Some(end) = end else { return bytes.len() };
        at = end;
    }
}

/// Where the string ends in which `marks`, the quotes and backslashes of `bytes`, stand.
fn end_of_string(bytes: &[u8], marks: &mut impl Iterator<Item = usize>) -> Option<usize> {
    loop {
        let mark = marks.next()?;
        if bytes[mark] == b'"' {
            return Some(mark + 1);
        }
        // What is escaped is a mark as well, or none.
        if matches!(bytes.get(mark + 1), Some(b'"' | b'\\')) {
            marks.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_as_they_are_written() {
        let spaced = " { \"a\" : [1, {\"}\": \"]\"}] ,\n\"\\u0062\":\t\"c,\\\"}\" , \"a\":-1.5e3}";
        let taken = [("\"a\"", "[1, {\"}\": \"]\"}]"), ("\"\\u0062\"", "\"c,\\\"}\""), ("\"a\"", "-1.5e3")];
        for (json, expected, rest) in [
            (spaced.trim_ascii(), taken.as_slice(), "}"),
            ("{}", &[], "}"),
            ("{ } x", &[], "} x"),
            (r#"{"a":null,"b":true} "#, &[(r#""a""#, "null"), (r#""b""#, "true")], "} "),
            // What is no JSON ends early, and does not end with the bracket.
            (r#"{"a":1"#, &[(r#""a""#, "1")], ""),
            (r#"{"a"}"#, &[], r#""a"}"#),
            (r#"{"a":[1"#, &[(r#""a""#, "[1")], ""),
            (r#"{"a":"b}"#, &[(r#""a""#, r#""b}"#)], ""),
            ("{a:1}", &[], "a:1}"),
        ] {
            let mut members = Members::of(json).unwrap();
            assert_eq!((members.by_ref().collect::<Vec<_>>().as_slice(), members.rest()), (expected, rest), "{json}");
        }
        for json in ["", "[]", "7", "\"{\""] {
            assert!(Members::of(json).is_none(), "{json}");
        }
    }
}
