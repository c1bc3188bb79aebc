//! Where the operator serves the book: it is not a part of the program.

use domain::Invalid;
use http::Uri;

/// An absolute address, for a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookUrl(String);

impl BookUrl {
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let is_address =
            |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
        if text.parse().is_ok_and(|uri| is_address(&uri)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::new(field, "must be an address such as https://docs.example/timer/"))
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_absolute_address_of_the_web_becomes_a_link() {
        for good in ["https://docs.example", "http://127.0.0.1:3000/book/?a=b"] {
            assert_eq!(BookUrl::parse("BOOK_URL", good).unwrap().as_str(), good);
        }
        for bad in ["", "docs.example", "/book", "javascript:alert(1)", "ftp://docs.example/", "https://", "https://a b/"] {
            let refused = BookUrl::parse("BOOK_URL", bad).unwrap_err().to_string();
            assert!(refused.contains("must be an address such as"), "{bad}: {refused}");
        }
    }
}
