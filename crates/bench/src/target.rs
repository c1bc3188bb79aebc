//! The service under load.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::Failed;

#[derive(Debug, Clone)]
pub struct Target {
    /// The host and port, as the requests name them.
    pub host: String,
    pub address: SocketAddr,
    pub api_key: String,
}

impl Target {
    /// Parses a URL such as `http://127.0.0.1:8080`.
    pub fn parse(url: &str, api_key: &str) -> Result<Self, Failed> {
        let not_a_url = || Failed::Option(format!("the URL of the service must be such as http://127.0.0.1:8080, not {url}."));
        let host = url.strip_prefix("http://").ok_or_else(not_a_url)?.trim_end_matches('/');
        if host.is_empty() || host.contains(['/', '@', '?', '#']) {
            return Err(not_a_url());
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let looked_up = if has_port { host.to_owned() } else { format!("{host}:80") };
        let addresses = looked_up.to_socket_addrs().map_err(|error| Failed::Run(format!("{host} cannot be found: {error}.")))?;
        let address = addresses.min_by_key(|address| !address.is_ipv4());
        let address = address.ok_or_else(|| Failed::Run(format!("{host} has no address.")))?;
        if !is_header_value(api_key) {
            return Err(Failed::Option("the API key must be fit for a header.".to_owned()));
        }
        Ok(Self { host: host.to_owned(), address, api_key: api_key.to_owned() })
    }
}

fn is_header_value(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_scheme_a_host_and_perhaps_a_port() {
        for (url, address) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://127.0.0.1:1/", "127.0.0.1:1"),
            ("http://127.0.0.1", "127.0.0.1:80"),
        ] {
            assert_eq!(Target::parse(url, "key").unwrap().address.to_string(), address, "{url}");
        }
        for url in ["", "127.0.0.1:8080", "https://127.0.0.1", "http://", "http://a@127.0.0.1", "http://127.0.0.1/timers"] {
            assert!(matches!(Target::parse(url, "key"), Err(Failed::Option(_))), "{url}");
        }
    }

    #[test]
    fn a_key_that_would_break_the_request_is_refused() {
        for key in ["", "a\r\nb", "é"] {
            assert!(matches!(Target::parse("http://127.0.0.1", key), Err(Failed::Option(_))), "{key:?}");
        }
    }
}
