//! Where a table is, and how it is used: all that a URL says.

use std::fmt;

use url::{Host, Url};

const FORM: &str = "dynamodb://region/table, or dynamodb:///table for the region of the environment";
/// The number of shards of a new table, unless the address gives another.
const SHARDS: u16 = 64;
const SHARDS_MAX: u16 = 4_096;
/// What DynamoDB allows.
const TABLE_CHARS: std::ops::RangeInclusive<usize> = 3..=255;

/// `dynamodb://region/table`, with two parameters: `endpoint`, another place than that of the region, and `shards`, into how many partitions
/// the timers of a new table are divided. Credentials are never in it: they come from where programs on AWS find them.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// `None`: that of the environment.
    pub(crate) region: Option<String>,
    pub(crate) table: String,
    pub(crate) endpoint: Option<Endpoint>,
    shards: u16,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    /// A DynamoDB Local: on this machine, without TLS, and with any credentials.
    pub is_local: bool,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.location())
    }
}

impl Address {
    /// Reads a URL. What is wrong with it is told as a rule that it breaks: `must name a table…`.
    pub fn parse(url: &str) -> Result<Self, String> {
        let form = |rule: &str| format!("{rule}: write it as {FORM}");
        let url = Url::parse(url).map_err(|_| form("must be a URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            let rule = "must hold no credentials: they come from the environment, a profile, or the role of the machine";
            return Err(rule.to_owned());
        }
        let region = url.host_str().filter(|host| !host.is_empty());
        let table = url.path().trim_start_matches('/');
        let mut address = Self {
            region: region.map(|region| region_name(region).ok_or_else(|| form("must name a region of AWS"))).transpose()?,
            table: table_name(table).ok_or_else(|| form("must name a table, of 3 to 255 letters, digits, _, - and ."))?,
            endpoint: None,
            shards: SHARDS,
        };
        if url.port().is_some() {
            return Err(form("must name no port"));
        }
        for (name, value) in url.query_pairs() {
            address.set(&name, &value)?;
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "endpoint" => self.endpoint = Some(endpoint(value)?),
            "shards" => {
                let shards = value.parse().ok().filter(|shards| (1..=SHARDS_MAX).contains(shards));
                self.shards =
                    shards.ok_or_else(|| format!("has a parameter `shards` that must be a number from 1 to {SHARDS_MAX}"))?;
            }
            _ => return Err(format!("has a parameter `{name}` that does not exist: there are endpoint, shards")),
        }
        Ok(())
    }

    /// Into how many partitions the timers of a new table are divided. One that is there keeps its own number.
    pub const fn shards(&self) -> u16 {
        self.shards
    }

    /// Where it is.
    pub fn location(&self) -> String {
        let place = match (&self.endpoint, &self.region) {
            (Some(endpoint), _) => endpoint.url.trim_end_matches('/'),
            (None, Some(region)) => region,
            (None, None) => "the region of the environment",
        };
        format!("{place}, table {}", self.table)
    }
}

fn region_name(name: &str) -> Option<String> {
    let is_name = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    name.chars().all(is_name).then(|| name.to_owned())
}

fn table_name(name: &str) -> Option<String> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    (TABLE_CHARS.contains(&name.len()) && name.chars().all(is_name)).then(|| name.to_owned())
}

fn endpoint(value: &str) -> Result<Endpoint, String> {
    const RULE: &str = "has a parameter `endpoint` that must be https://host, or http://127.0.0.1:port for a DynamoDB Local";
    let url = Url::parse(value).map_err(|_| RULE)?;
    let is_loopback = match url.host().ok_or(RULE)? {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.path() == "/";
    match url.scheme() {
        "https" if is_plain => Ok(Endpoint { url: url.into(), is_local: false }),
        // Anything else would carry timers over a network for everyone to read.
        "http" if is_plain && is_loopback => Ok(Endpoint { url: url.into(), is_local: true }),
        _ => Err(RULE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_region_and_table() {
        let address = Address::parse("dynamodb://eu-central-1/timer?shards=16").unwrap();
        assert_eq!((address.region.as_deref(), address.table.as_str(), address.shards()), (Some("eu-central-1"), "timer", 16));
        assert_eq!(address.location(), "eu-central-1, table timer");
        let address = Address::parse("dynamodb:///timer").unwrap();
        assert_eq!((address.region.as_deref(), address.shards()), (None, SHARDS));
        assert_eq!(address.location(), "the region of the environment, table timer");
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        let is_local = |endpoint: &str| {
            let address = Address::parse(&format!("dynamodb://us-east-1/timer?endpoint={endpoint}"));
            address.map(|address| address.endpoint.is_some_and(|endpoint| endpoint.is_local))
        };
        for endpoint in ["http://127.0.0.1:8000", "http://localhost:8000/", "http://[::1]:8000", "http%3A%2F%2F127.0.0.1%3A8000"]
        {
            assert_eq!(is_local(endpoint), Ok(true), "{endpoint}");
        }
        assert_eq!(is_local("https://vpce-1.dynamodb.eu-central-1.vpce.amazonaws.com"), Ok(false));
        for endpoint in ["http://10.0.0.1:8000", "http://dynamodb:8000", "http://a:b@127.0.0.1:8000", "ftp://127.0.0.1", "8000"] {
            assert!(is_local(endpoint).unwrap_err().contains("endpoint"), "{endpoint}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_not_shown() {
        for (url, rule) in [
            ("dynamodb://", "must name a table"),
            ("dynamodb://us-east-1", "must name a table"),
            ("dynamodb://us-east-1/ab", "must name a table"),
            ("dynamodb://us-east-1/a/table", "must name a table"),
            ("dynamodb://US_EAST/timer", "must name a region"),
            ("dynamodb://us-east-1:443/timer", "must name no port"),
            ("dynamodb://key:secret@us-east-1/timer", "must hold no credentials"),
            ("dynamodb://us-east-1/timer?shards=0", "a parameter `shards` that must be a number from 1 to 4096"),
            ("dynamodb://us-east-1/timer?color=secret", "a parameter `color` that does not exist"),
        ] {
            let refused = Address::parse(url).unwrap_err();
            assert!(refused.contains(rule), "{url}: {refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
