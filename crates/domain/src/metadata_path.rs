use std::fmt;

use crate::{
    Invalid,
    checked_json::{Members, next_item, value_bytes},
    json::string_in_checked,
    limits,
};

/// Where a scalar stands in metadata: names of members, and positions in arrays, separated by dots (`items.0.id`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataPath(String);

impl MetadataPath {
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        if text.len() > limits::METADATA_PATH_BYTES_MAX {
            let rule = format!("must not be a path of more than {} bytes", limits::METADATA_PATH_BYTES_MAX);
            return Err(Invalid::new(field, rule));
        }
        if text.split('.').any(str::is_empty) {
            return Err(Invalid::new(field, "must be a path of names separated by dots"));
        }
        if text.split('.').count() > limits::JSON_DEPTH_MAX {
            return Err(Invalid::new(field, format!("must be a path of at most {} names", limits::JSON_DEPTH_MAX)));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }

    /// Whether the scalar at this path has the given text. Numbers, `true`, `false` and `null` are compared as they are written
    /// (`1.10` is not `1.1`), strings by what they mean. Of members with the same name the last one counts.
    pub fn leads_to(&self, json: &str, text: &str) -> bool {
        self.scalar_in(json).is_some_and(|scalar| is_text_of(scalar, text))
    }

    /// The JSON text of the scalar at this path. `json` was checked when it was stored: what is not JSON leads nowhere.
    fn scalar_in<'a>(&self, json: &'a str) -> Option<&'a str> {
        let found = self.names().try_fold(json.trim_ascii(), |value, name| match value.as_bytes().first()? {
            b'{' => member(value, name),
            b'[' => element(value, name),
            _ => None,
        })?;
        (!found.starts_with(['{', '['])).then_some(found)
    }
}

impl fmt::Display for MetadataPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_text_of(scalar: &str, text: &str) -> bool {
    if scalar.starts_with('"') { string_means(scalar, text) } else { scalar == text }
}

/// Whether a JSON string with its quotes means this text.
fn string_means(quoted: &str, text: &str) -> bool {
    string_in_checked(quoted).is_some_and(|meaning| meaning == text)
}

/// The value of the last member of that name in the object with which `json` begins.
fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    Members::of(json)?.filter(|(quoted, _)| string_means(quoted, name)).last().map(|(_, value)| value)
}

/// The element at that position in the array with which `json` begins.
fn element<'a>(json: &'a str, position: &str) -> Option<&'a str> {
    let is_position = position == "0" || (!position.starts_with('0') && position.bytes().all(|byte| byte.is_ascii_digit()));
    let position: usize = position.parse().ok().filter(|_| is_position)?;
    let mut rest = json.strip_prefix('[')?.trim_ascii_start();
    for passed in 0.. {
        if rest.is_empty() || rest.starts_with(']') {
            return None;
        }
        let (value, after) = rest.split_at_checked(value_bytes(rest))?;
        if passed == position {
            return Some(value);
        }
        rest = next_item(after);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_scalars_as_they_are_written() {
        let json = r#" { "customer" : { "id" : 42, "name" : "Zo\u00eb \"Z\"", "tags": ["a", "b,]}", 1.10], "x": {} } ,
            "n": null, "t": true, "e": "", "1": "one", "dup": 1, "dup": 2, "a\u0062c": 3, "huge": 12345678901234567890,
            "\ud800": 7, "list": [ [1, [2]], {"id": "x:y"} , -0 ] , "nul": "a\u0000b"} "#;
        for (path, text, expected) in [
            ("customer.id", "42", true),
            ("customer.id", "42.0", false),
            ("customer.id", "4", false),
            ("customer", "42", false),
            ("customer.x", "{}", false),
            ("customer.x.y", "1", false),
            ("customer.id.x", "42", false),
            ("customer.name", "Zoë \"Z\"", true),
            ("customer.tags.0", "a", true),
            ("customer.tags.1", "b,]}", true),
            ("customer.tags.2", "1.10", true),
            ("customer.tags.2", "1.1", false),
            ("customer.tags.3", "", false),
            ("customer.tags.00", "a", false),
            ("customer.tags.+0", "a", false),
            ("customer.tags.99999999999999999999", "a", false),
            ("n", "null", true),
            ("n", "", false),
            ("t", "true", true),
            ("e", "", true),
            ("1", "one", true),
            ("dup", "2", true),
            ("dup", "1", false),
            ("abc", "3", true),
            ("huge", "12345678901234567890", true),
            ("list.0.1.0", "2", true),
            ("list.1.id", "x:y", true),
            ("list.2", "-0", true),
            ("nul", "a\0b", true),
            ("missing", "1", false),
        ] {
            let path = MetadataPath::parse("metadata", path).unwrap();
            assert_eq!(path.leads_to(json, text), expected, "{path} = {text}");
        }
    }

    #[test]
    fn what_is_no_object_or_no_json_leads_nowhere() {
        let path = MetadataPath::parse("metadata", "a.0").unwrap();
        for json in
            ["", "7", "\"a\"", "null", "{", "{\"a\"", "{\"a\":", "{\"a\":[", "[", "{a}", "}{", "[,]", "{\"a\":]}", "é", "{é"]
        {
            assert!(!path.leads_to(json, "1"), "{json}");
        }
    }

    #[test]
    fn paths_are_limited() {
        for (path, start) in [
            ("", "metadata must be a path of names separated by dots"),
            (".", "metadata must be a path of names"),
            ("a..b", "metadata must be a path of names"),
            ("a.", "metadata must be a path of names"),
            (&"x".repeat(1025), "metadata must not be a path of more than 1024 bytes"),
            (&vec!["x"; 65].join("."), "metadata must be a path of at most 64 names"),
        ] {
            let refusal = MetadataPath::parse("metadata", path).unwrap_err().to_string();
            assert!(refusal.starts_with(start), "{refusal}");
        }
        assert!(MetadataPath::parse("metadata", &vec!["x"; 64].join(".")).is_ok());
    }
}
