//! Cookies, read and written.

use http::{HeaderMap, HeaderValue, header};

/// The value of the cookie with this name. Of several with one name the first counts, as browsers send the most specific one first.
pub(crate) fn read<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(named, value)| (named == name).then_some(value))
}

/// The attributes of a cookie that is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CookieAttributes<'a> {
    pub path: &'a str,
    pub is_secure: bool,
    /// Whether scripts may not read it.
    pub is_http_only: bool,
    pub seconds: i64,
}

/// The header that sets a cookie, which comes along when a link of another site is followed, so that a link from a chat opens its page;
/// requests that change something are checked for their origin. `None` where the value cannot stand in a header.
pub(crate) fn write(name: &str, value: &str, attributes: CookieAttributes<'_>) -> Option<HeaderValue> {
    let secure = if attributes.is_secure { "; Secure" } else { "" };
    let http_only = if attributes.is_http_only { "; HttpOnly" } else { "" };
    let path = if attributes.path.is_empty() { "/" } else { attributes.path };
    let text = format!("{name}={value}; Path={path}; Max-Age={}; SameSite=Lax{http_only}{secure}", attributes.seconds);
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("xtimer=1; timer=a=b;timer=2;  last=3"))]);
        for (name, value) in [("timer", Some("a=b")), ("xtimer", Some("1")), ("last", Some("3")), ("time", None)] {
            assert_eq!(read(&headers, name), value, "{name}");
        }
    }
}
