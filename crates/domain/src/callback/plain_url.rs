//! URLs in which nothing has to be understood. Nearly all are of this kind, and to parse one costs as much as all else of a callback.

use std::net::Ipv4Addr;

use crate::limits;

/// The longest name that a host can have.
const HOST_BYTES_MAX: usize = 253;

/// Whether a URL is allowed, and a parser would give it back as it is: in small letters where letters are folded, with a path, without
/// escapes, dot segments, a fragment or the default port. `false` says nothing.
pub(super) fn is_plain(url: &str) -> bool {
    let (rest, port_default) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (rest, "80"),
        (_, Some(rest)) => (rest, "443"),
        (None, None) => return false,
    };
    let Some(path_at) = memchr::memchr(b'/', rest.as_bytes()) else { return false };
    let (authority, path) = rest.split_at(path_at);
    let is_authority = match authority.split_once(':') {
        Some((host, port)) => is_plain_host(host) && is_plain_port(port) && port != port_default,
        None => is_plain_host(authority),
    };
    url.len() <= limits::URL_CHARS_MAX && is_authority && is_plain_path(path)
}

fn is_plain_host(host: &str) -> bool {
    // A name that ends with a number is read as an address, in more ways than this one.
    let is_name = host.rsplit('.').next().is_some_and(|label| label.starts_with(|first: char| first.is_ascii_lowercase()));
    host.len() <= HOST_BYTES_MAX && (if is_name { host.split('.').all(is_plain_label) } else { host.parse::<Ipv4Addr>().is_ok() })
}

fn is_plain_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    // The third and fourth character tell a label that stands for one in another script.
    let is_encoded = label.as_bytes().get(2..4) == Some(b"--");
    !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && !is_encoded && label.bytes().all(is_inner)
}

fn is_plain_port(port: &str) -> bool {
    !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
}

/// Path and query.
fn is_plain_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~?=&,".contains(&byte);
    path.bytes().all(is_plain) && !path.contains("/.")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use super::*;

    #[test]
    fn usual_addresses_are_plain() {
        for (url, expected) in [
            ("http://a.example/", true),
            ("https://api-2.example.com:8443/hooks/v1_2/~x/cart-abandoned.json?id=a,b&x=", true),
            ("http://127.0.0.1:38000/1", true),
            ("http://localhost/a//b", true),
            ("http://a.example", false),
            ("HTTP://a.example/", false),
            ("http://A.example/", false),
            ("http://a.example:80/", false),
            ("https://a.example:443/", false),
            ("https://a.example:80/", true),
            ("http://a.example:0/", false),
            ("http://a.example:08/", false),
            ("http://a.example:+8/", false),
            ("http://a.example:/", false),
            ("http://a.example:65536/", false),
            ("http://127.0.0.01/", false),
            ("http://127.1/", false),
            ("http://0x7f000001/", false),
            ("http://a.0x7f/", false),
            ("http://[::1]/", false),
            ("http://xn--a.example/", false),
            ("http://a..example/", false),
            ("http://a.example./", false),
            ("http://u:p@a.example/", false),
            ("http://a.example/../b", false),
            ("http://a.example/.", false),
            ("http://a.example/%2e", false),
            ("http://a.example/ä", false),
            ("http://a.example/#b", false),
            ("http://a.example\\b/", false),
            ("ftp://a.example/", false),
            ("http:///a.example/", false),
        ] {
            assert_eq!(is_plain(url), expected, "{url}");
            assert!(!expected || is_given_back(url), "{url}");
        }
        let long = |chars: usize| format!("http://a.example/{}", "a".repeat(chars - 17));
        assert!(is_plain(&long(limits::URL_CHARS_MAX)) && !is_plain(&long(limits::URL_CHARS_MAX + 1)));
    }

    /// Made of what URLs are made of.
    fn nearly_a_url() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "http://",
            "https://",
            "a",
            "xn--",
            "example",
            ".com",
            "1",
            "127.0.0.1",
            "0x7f",
            "-",
            "--",
            "_",
            ".",
            "..",
            ":",
            "80",
            "443",
            "0",
            "65535",
            "/",
            "//",
            "/.",
            "?",
            "=",
            "&",
            ",",
            "~",
            "@",
            "#",
            "%2e",
            "A",
            "é",
            "[::1]",
            "\\",
            " ",
        ]);
        let scheme = prop::sample::select(vec!["http://", "https://"]);
        let host = prop::sample::select(vec!["", "a", "1", "127.0.0.1", "xn--a", "a.example", "-"]);
        let rest = prop::collection::vec(part, 0..7);
        (scheme, host, rest).prop_map(|(scheme, host, rest)| format!("{scheme}{host}{}", rest.concat()))
    }

    fn is_given_back(url: &str) -> bool {
        Url::parse(url).is_ok_and(|parsed| {
            let is_whole = parsed.as_str() == url && parsed.host_str().is_some_and(|host| !host.is_empty());
            let has_more = !parsed.username().is_empty() || parsed.password().is_some() || parsed.fragment().is_some();
            is_whole && !has_more && parsed.port() != Some(0)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn a_plain_url_is_one_that_its_parser_gives_back(url in nearly_a_url()) {
            prop_assert!(!is_plain(&url) || is_given_back(&url));
        }
    }
}
