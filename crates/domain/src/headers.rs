use serde::ser::SerializeMap;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use crate::{Invalid, limits};

/// The client's own headers of a callback, in the order they came, fit to be sent as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

/// Names that belong to the connection or to the service, not to the client.
const REFUSED: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
    "http2-settings",
];
const REFUSED_PREFIXES: [&str; 3] = ["proxy-", "webhook-", "x-timer-"];

impl PartialSchema for Headers {
    fn schema() -> RefOr<Schema> {
        let value = ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^[\t -~]*$")).max_length(Some(4096)).build();
        let name = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")).build();
        ObjectBuilder::new()
            .property_names(Some(Schema::from(name)))
            .additional_properties(Some(Schema::from(value)))
            .max_properties(Some(limits::HEADERS_MAX))
            .into()
    }
}

impl ToSchema for Headers {}

impl Headers {
    pub const EMPTY: Self = Self(Vec::new());

    pub fn parse(pairs: Vec<(String, String)>) -> Result<Self, Invalid> {
        if pairs.len() > limits::HEADERS_MAX {
            return Err(Invalid::new("headers", format!("must not be more than {}", limits::HEADERS_MAX)));
        }
        let mut bytes = 0;
        for (at, (name, value)) in pairs.iter().enumerate() {
            check_name(name)?;
            check_value(name, value)?;
            if pairs[..at].iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                return Err(Invalid::new(format!("headers.{name}"), "must not be given twice"));
            }
            bytes += name.len() + value.len();
        }
        if bytes > limits::HEADERS_BYTES_MAX {
            return Err(Invalid::new("headers", format!("must not have more than {} bytes together", limits::HEADERS_BYTES_MAX)));
        }
        Ok(Self(pairs))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn check_name(name: &str) -> Result<(), Invalid> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        // The name is not repeated, because it may hold anything.
        return Err(Invalid::new("headers", "must have valid HTTP header names"));
    }
    let lower = name.to_ascii_lowercase();
    if REFUSED.contains(&lower.as_str()) || REFUSED_PREFIXES.iter().any(|prefix| lower.starts_with(prefix)) {
        return Err(Invalid::new(format!("headers.{name}"), "is set by the service and must not be given"));
    }
    Ok(())
}

fn check_value(name: &str, value: &str) -> Result<(), Invalid> {
    let field = || format!("headers.{name}");
    if name.len() + value.len() > limits::HEADER_BYTES_MAX {
        return Err(Invalid::new(field(), format!("must not be longer than {} bytes", limits::HEADER_BYTES_MAX)));
    }
    if !value.bytes().all(|b| matches!(b, b'\t' | 0x20..=0x7e)) {
        return Err(Invalid::new(field(), "must be printable ASCII"));
    }
    Ok(())
}

impl serde::Serialize for Headers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Headers, String> {
        let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Headers::parse(owned).map_err(|e| e.to_string())
    }

    #[test]
    fn good_headers_keep_their_order_and_case() {
        let headers = parse(&[("X-B", "1"), ("x-a", "tab\there"), ("Authorization", "Bearer t")]).unwrap();
        assert_eq!(serde_json::to_string(&headers).unwrap(), r#"{"X-B":"1","x-a":"tab\there","Authorization":"Bearer t"}"#);
    }

    #[test]
    fn bad_headers_are_refused_by_name() {
        let long = "v".repeat(limits::HEADER_BYTES_MAX);
        for (pairs, complaint) in [
            (vec![("", "v")], "headers must have valid HTTP header names"),
            (vec![("a b", "v")], "headers must have valid HTTP header names"),
            (vec![("a\r\nb", "v")], "headers must have valid HTTP header names"),
            (vec![("Host", "v")], "headers.Host is set by the service and must not be given"),
            (vec![("content-LENGTH", "v")], "headers.content-LENGTH is set by the service and must not be given"),
            (vec![("Webhook-Id", "v")], "headers.Webhook-Id is set by the service and must not be given"),
            (vec![("a", "x\r\ny: z")], "headers.a must be printable ASCII"),
            (vec![("a", "é")], "headers.a must be printable ASCII"),
            (vec![("a", "1"), ("A", "2")], "headers.A must not be given twice"),
            (vec![("a", long.as_str())], "headers.a must not be longer than 4096 bytes"),
        ] {
            assert_eq!(parse(&pairs), Err(complaint.to_owned()));
        }
        let many: Vec<_> = (0..33).map(|n| (format!("x-{n}"), String::new())).collect();
        assert_eq!(Headers::parse(many).unwrap_err().to_string(), "headers must not be more than 32");
        let fat: Vec<_> = (0..5).map(|n| (format!("x-{n}"), "v".repeat(4000))).collect();
        assert_eq!(Headers::parse(fat).unwrap_err().to_string(), "headers must not have more than 16384 bytes together");
    }
}
