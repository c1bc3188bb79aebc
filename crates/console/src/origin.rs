//! Where a request comes from: the guard against forged requests (CSRF), and whether a cookie would travel safely.

use std::net::IpAddr;

use http::{HeaderMap, header};

use crate::config::ConsoleUrl;

/// Whether a request that changes something was made by a page of this console.
///
/// Browsers say so in `Sec-Fetch-Site`; those that do not, and all of them over plain HTTP, send `Origin`. A request with neither, or with
/// two that contradict each other, is refused.
pub(crate) fn is_own(headers: &HeaderMap, url: Option<&ConsoleUrl>) -> bool {
    let text = |name: http::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let by_site = headers.get("sec-fetch-site").map(|site| site == "same-origin");
    let by_origin = text(header::ORIGIN).map(|origin| {
        let is_host = text(header::HOST).is_some_and(|host| {
            let authority = origin.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
            authority.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
        });
        is_host || url.is_some_and(|url| url.origin().eq_ignore_ascii_case(origin))
    });
    match (by_site, by_origin) {
        (None, None) => false,
        (by_site, by_origin) => by_site.unwrap_or(true) && by_origin.unwrap_or(true),
    }
}

/// Scheme and authority of the addresses that a viewer can use.
pub(crate) fn opened_under(headers: &HeaderMap, url: Option<&ConsoleUrl>) -> String {
    let host = || headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    url.map_or_else(|| format!("http://{}", host()), |url| url.origin().to_owned())
}

/// How the cookie of a login may travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Over TLS, which ends at a proxy.
    Https,
    /// Within this machine, or where the operator says that plain HTTP will do.
    Plain,
    /// Readable on its way.
    Unsafe,
}

impl Transport {
    /// Forwarded headers are not believed: anyone can send them.
    pub(crate) fn of(headers: &HeaderMap, peer: Option<IpAddr>, url: Option<&ConsoleUrl>, insecure_cookie: bool) -> Self {
        if url.is_some_and(ConsoleUrl::is_https) {
            return Self::Https;
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let is_local = peer.is_some_and(|peer| peer.to_canonical().is_loopback()) && is_loopback(host);
        if is_local || insecure_cookie { Self::Plain } else { Self::Unsafe }
    }

    /// A prefixed name binds the cookie to this host and to TLS.
    pub(crate) const fn cookie_name(self) -> &'static str {
        match self {
            Self::Https => "__Host-timer",
            Self::Plain | Self::Unsafe => "timer",
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_request_must_come_from_a_page_of_the_console() {
        let url = ConsoleUrl::parse("url", "https://timers.example").unwrap();
        for (pairs, expected) in [
            (&[("host", "a:8080"), ("sec-fetch-site", "same-origin"), ("origin", "http://a:8080")][..], true),
            (&[("host", "a:8080"), ("sec-fetch-site", "same-origin")], true),
            (&[("host", "a:8080"), ("origin", "http://a:8080")], true),
            (&[("host", "inner:8080"), ("origin", "https://timers.example")], true),
            (&[("host", "a:8080")], false),
            (&[], false),
            (&[("host", "a:8080"), ("origin", "http://b:8080")], false),
            (&[("host", "a:8080"), ("origin", "http://a:8081")], false),
            (&[("host", "a:8080"), ("origin", "null")], false),
            (&[("host", "a"), ("origin", "chrome-extension://a")], false),
            (&[("host", "a:8080"), ("sec-fetch-site", "cross-site"), ("origin", "http://a:8080")], false),
            (&[("host", "a:8080"), ("sec-fetch-site", "same-site"), ("origin", "http://a:8080")], false),
            (&[("host", "a:8080"), ("sec-fetch-site", "none")], false),
            (&[("host", "a:8080"), ("sec-fetch-site", "same-origin"), ("origin", "http://b")], false),
        ] {
            assert_eq!(is_own(&headers(pairs), Some(&url)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_cookie_travels_over_tls_or_within_the_machine() {
        let https = ConsoleUrl::parse("url", "https://timers.example").unwrap();
        let http = ConsoleUrl::parse("url", "http://timers.example").unwrap();
        let here: IpAddr = [127, 0, 0, 1].into();
        let there: IpAddr = [10, 0, 0, 7].into();
        for (host, peer, url, insecure, expected) in [
            ("127.0.0.1:8080", here, None, false, Transport::Plain),
            ("localhost:8080", here, None, false, Transport::Plain),
            ("[::1]:8080", here, None, false, Transport::Plain),
            ("timers.example", here, None, false, Transport::Unsafe),
            ("127.0.0.1:8080", there, None, false, Transport::Unsafe),
            ("timers.example", there, Some(&http), false, Transport::Unsafe),
            ("timers.example", there, Some(&https), false, Transport::Https),
            ("timers.example", there, None, true, Transport::Plain),
        ] {
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
            assert_eq!(Transport::of(&headers, Some(peer), url, insecure), expected, "{host} {peer} {url:?}");
        }
    }
}
