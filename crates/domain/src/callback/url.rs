use url::Url;

use super::{Address, plain_url};
use crate::{Invalid, TimerId, limits};

/// An `http` or `https` address without credentials. What was checked is what is dialled: this is the text of the parsed form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackUrl(String);

impl CallbackUrl {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if plain_url::is_plain(text) {
            return Ok(Self(text.to_owned()));
        }
        let refuse = |rule: String| Err(Invalid::new("url", rule));
        if text.chars().count() > limits::URL_CHARS_MAX {
            return refuse(format!("must not be longer than {} characters", limits::URL_CHARS_MAX));
        }
        // The parser drops them, so that what it reads is not what is written.
        if text.contains(['\t', '\n', '\r']) {
            return refuse("must not contain tabs or line breaks".to_owned());
        }
        let Ok(mut url) = Url::parse(text) else {
            return refuse("must be a valid http or https URL".to_owned());
        };
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) || !names_a_host(text) {
            return refuse("must be a valid http or https URL".to_owned());
        }
        if url.port() == Some(0) {
            return refuse("must have a port from 1 to 65535, or none".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("must not contain credentials: use headers".to_owned());
        }
        // A fragment never leaves the client.
        url.set_fragment(None);
        // Once more: escapes and punycode make it longer, and what is stored must read back.
        if url.as_str().len() > limits::URL_CHARS_MAX {
            return refuse(format!("must not be longer than {} characters", limits::URL_CHARS_MAX));
        }
        Ok(Self(url.into()))
    }

    /// Takes text that was checked when it was stored.
    pub(super) const fn trusted(text: String) -> Self {
        Self(text)
    }

    /// The same address with the timer's id as one more segment of its path.
    #[must_use]
    pub fn with_id(&self, id: TimerId) -> Self {
        let origin = self.origin();
        let (path, query) = self.0[origin.len()..].split_at(self.without_query().len() - origin.len());
        Self(format!("{origin}{}/{id}{query}", path.trim_end_matches('/')))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name or an address; one of IPv6 in brackets.
    pub fn host(&self) -> &str {
        self.host_and_port().0
    }

    pub fn port(&self) -> u16 {
        self.host_and_port().1
    }

    pub fn address(&self) -> Address<'_> {
        let (host, port) = self.host_and_port();
        Address::Host(host, port)
    }

    /// Host and port, also where the port is the one of the scheme.
    fn host_and_port(&self) -> (&str, u16) {
        let known = if self.0.starts_with("https:") { 443 } else { 80 };
        let both = self.origin().get(self.host_at()..).unwrap_or_default();
        match both.rsplit_once(':') {
            // The colons of an address stand in brackets.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(known)),
            _ => (both, known),
        }
    }

    /// Scheme, host and port. There are no credentials that could stand between them.
    pub fn origin(&self) -> &str {
        let behind = self.0.as_bytes().get(self.host_at()..).unwrap_or_default();
        let host_bytes = memchr::memchr2(b'/', b'?', behind).unwrap_or(behind.len());
        self.0.get(..self.host_at() + host_bytes).unwrap_or(&self.0)
    }

    /// Where the host begins. The parsed form begins with one of two schemes, in small letters.
    fn host_at(&self) -> usize {
        if self.0.starts_with("https:") { "https://".len() } else { "http://".len() }
    }

    /// All but the query, where people keep their keys.
    pub fn without_query(&self) -> &str {
        self.0.split_once('?').map_or(&*self.0, |(start, _)| start)
    }
}

/// Whether a host stands where it belongs. A parser that does as browsers do finds one in `http:///a` and `http:a`, too, where another
/// reader finds a path.
fn names_a_host(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")) && !rest.starts_with(['/', '\\', '?', '#', ':'])
}
