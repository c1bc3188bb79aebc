//! Where a cluster is, and how it is used: all that a URL says.

use std::{fmt, net::IpAddr, path::PathBuf};

use crate::tls::{TlsOptions, Verification};

const FORM: &str = "cassandra://user:password@host:port,host2:port/keyspace?replication=3";
const PORT: u16 = 9042;
/// The default number of shards: few enough for one Paxos round to carry many timers, and enough for some nodes to share them.
const SHARDS: u16 = 16;
const SHARDS_MAX: u16 = 4_096;
const REPLICATION: u32 = 3;
const REPLICATION_MAX: u32 = 100;
/// What Cassandra allows.
const KEYSPACE_CHARS_MAX: usize = 48;

/// A cluster of Cassandra and a keyspace of it.
#[derive(Clone, PartialEq, Eq)]
pub struct CassandraOptions {
    /// Some of its nodes, each with its port; the others are found by them.
    pub contact_points: Vec<String>,
    pub(crate) credentials: Option<(String, String)>,
    pub keyspace: String,
    pub(crate) replication: Replication,
    /// How many shards a new keyspace gets.
    pub shards: u16,
    /// The datacenter that all nodes of this service use, and no other.
    pub(crate) datacenter: Option<String>,
    /// `None` where connections are not encrypted.
    pub(crate) tls: Option<TlsOptions>,
}

/// What parameters say of encryption, by the names that PostgreSQL gives them.
#[derive(Default)]
struct TlsParameters {
    verification: Option<Verification>,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TlsParameters {
    /// Whether it was one of these.
    fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let file = || {
            if value.is_empty() { Err(format!("has a parameter `{name}` that must name a file")) } else { Ok(Some(value.into())) }
        };
        match name {
            "sslmode" => {
                self.verification = match value {
                    "disable" => None,
                    "verify-ca" => Some(Verification::Authority),
                    "verify-full" => Some(Verification::AuthorityAndAddress),
                    _ => return Err("has a parameter `sslmode` that must be disable, verify-ca or verify-full".to_owned()),
                };
            }
            "sslrootcert" => self.roots = file()?,
            "sslcert" => self.certificate = file()?,
            "sslkey" => self.key = file()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn options(self) -> Result<Option<TlsOptions>, String> {
        let Self { verification, roots, certificate, key } = self;
        let Some(verification) = verification else {
            let is_any_named = roots.is_some() || certificate.is_some() || key.is_some();
            let rule = "names certificates without `sslmode`, which must be verify-ca or verify-full";
            return if is_any_named { Err(rule.to_owned()) } else { Ok(None) };
        };
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err("must have both parameters `sslcert` and `sslkey`, or neither".to_owned()),
        };
        Ok(Some(TlsOptions { verification, roots, identity }))
    }
}

/// How many copies of each row a new keyspace has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replication {
    /// In every datacenter.
    Everywhere(u32),
    By(Vec<(String, u32)>),
}

/// Never shows credentials.
impl fmt::Debug for CassandraOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CassandraOptions({})", self.location())
    }
}

impl CassandraOptions {
    /// Reads a URL. What is wrong with it is told as a rule that it breaks: `must name a keyspace…`.
    pub fn parse(url: &str) -> Result<Self, String> {
        let form = |rule: &str| format!("{rule}: write it as {FORM}, special characters percent-encoded");
        let rest = url.strip_prefix("cassandra://").ok_or_else(|| form("must begin with cassandra://"))?;
        let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, keyspace) = address.split_once('/').ok_or_else(|| form("must name a keyspace"))?;
        if keyspace.contains('@') {
            return Err(form("must have no @ after its hosts"));
        }
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(credentials(user).ok_or_else(|| form("must name user and password"))?), hosts),
            None => (None, authority),
        };
        let contact_points: Option<Vec<String>> = hosts.split(',').map(contact_point).collect();
        let contact_points = contact_points.ok_or_else(|| form("must name hosts, with or without ports"))?;
        let replication =
            Replication::Everywhere(if contact_points.iter().all(|host| is_loopback(host)) { 1 } else { REPLICATION });
        let mut options = Self {
            contact_points,
            credentials,
            keyspace: keyspace_name(keyspace).ok_or_else(|| form("must name a keyspace of letters, digits and _"))?,
            replication,
            shards: SHARDS,
            datacenter: None,
            tls: None,
        };
        let mut tls = TlsParameters::default();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decoded(value).ok_or_else(|| form("must be text"))?;
            if !tls.set(name, &value)? {
                options.set(name, &value)?;
            }
        }
        options.tls = tls.options()?;
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "replication" => {
                self.replication = replication(value).ok_or(
                    "has a parameter `replication` that must be a number of copies, or one for each datacenter, as dc1:3,dc2:3",
                )?;
            }
            "shards" => {
                let shards = value.parse().ok().filter(|shards| (1..=SHARDS_MAX).contains(shards));
                self.shards =
                    shards.ok_or_else(|| format!("has a parameter `shards` that must be a number from 1 to {SHARDS_MAX}"))?;
            }
            "datacenter" => {
                let name = Some(value).filter(|name| is_datacenter(name));
                self.datacenter = Some(name.ok_or("has a parameter `datacenter` that must be the name of one")?.to_owned());
            }
            _ => {
                return Err(format!(
                    "has a parameter `{name}` that does not exist: there are replication, shards, datacenter, sslmode, sslrootcert, \
                     sslcert, sslkey"
                ));
            }
        }
        Ok(())
    }

    /// Where it is, without credentials.
    pub fn location(&self) -> String {
        format!("{}/{}", self.contact_points.join(","), self.keyspace)
    }
}

fn credentials(user: &str) -> Option<(String, String)> {
    let (user, password) = user.split_once(':')?;
    Some((decoded(user)?, decoded(password)?)).filter(|(user, _)| !user.is_empty())
}

/// A host with its port. IPv6 addresses stand in brackets.
fn contact_point(host: &str) -> Option<String> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
        _ => (host, PORT),
    };
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let is_address =
        name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).is_some_and(|v6| v6.parse::<IpAddr>().is_ok());
    (!name.is_empty() && port > 0 && (is_name(name) || is_address)).then(|| format!("{name}:{port}"))
}

fn is_loopback(contact_point: &str) -> bool {
    let host = contact_point.rsplit_once(':').map_or(contact_point, |(host, _)| host);
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// In lower case, as Cassandra takes names that are not quoted.
fn keyspace_name(name: &str) -> Option<String> {
    let is_allowed = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= KEYSPACE_CHARS_MAX;
    is_allowed.then(|| name.to_ascii_lowercase())
}

fn is_datacenter(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

fn replication(value: &str) -> Option<Replication> {
    let factor = |text: &str| text.parse::<u32>().ok().filter(|factor| (1..=REPLICATION_MAX).contains(factor));
    if let Some(everywhere) = factor(value) {
        return Some(Replication::Everywhere(everywhere));
    }
    let named = |part: &str| {
        let (name, number) = part.split_once(':')?;
        Some((name.to_owned(), factor(number)?)).filter(|(name, _)| is_datacenter(name))
    };
    value.split(',').map(named).collect::<Option<Vec<_>>>().map(Replication::By)
}

/// Without its percent-encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_how() {
        let options = CassandraOptions::parse(
            "cassandra://me:p%40ss@a.example,b:9043,[::1]/Timer?replication=dc1:3,dc2:2&shards=64&datacenter=dc1&sslmode=disable",
        )
        .unwrap();
        let shown = format!("{options:?}");
        assert_eq!(options.contact_points, ["a.example:9042", "b:9043", "[::1]:9042"]);
        assert_eq!(options.credentials, Some(("me".into(), "p@ss".into())));
        assert_eq!((options.keyspace.as_str(), options.shards), ("timer", 64));
        assert_eq!(options.replication, Replication::By(vec![("dc1".into(), 3), ("dc2".into(), 2)]));
        assert_eq!((options.datacenter.as_deref(), options.tls), (Some("dc1"), None));
        assert_eq!(shown, "CassandraOptions(a.example:9042,b:9043,[::1]:9042/timer)");
    }

    #[test]
    fn only_a_cluster_on_this_machine_has_one_copy_by_default() {
        for (hosts, factor) in [("127.0.0.1,localhost:7", 1), ("[::1]", 1), ("127.0.0.1,db", 3), ("10.0.0.1", 3)] {
            let options = CassandraOptions::parse(&format!("cassandra://{hosts}/timer")).unwrap();
            assert_eq!((options.replication, options.shards), (Replication::Everywhere(factor), 16), "{hosts}");
        }
    }

    #[test]
    fn connections_are_encrypted_as_asked_for() {
        let tls = |parameters: &str| CassandraOptions::parse(&format!("cassandra://a/timer?{parameters}")).unwrap().tls;
        let machine = TlsOptions { verification: Verification::AuthorityAndAddress, roots: None, identity: None };
        assert_eq!(tls("sslmode=verify-full"), Some(machine));
        let own = TlsOptions {
            verification: Verification::Authority,
            roots: Some("/etc/ca.pem".into()),
            identity: Some(("/etc/own.pem".into(), "/etc/own key.pem".into())),
        };
        let named = "sslmode=verify-ca&sslrootcert=/etc/ca.pem&sslcert=%2Fetc/own.pem&sslkey=/etc/own%20key.pem";
        assert_eq!(tls(named), Some(own));
        assert_eq!(tls("sslmode=disable"), None);
    }

    #[test]
    fn what_is_wrong_is_named_and_nothing_secret_is_quoted() {
        for (url, named) in [
            ("cassandra://host", "keyspace"),
            ("cassandra://host/", "keyspace"),
            ("cassandra://host/a-b", "keyspace"),
            ("cassandra:///timer", "hosts"),
            ("cassandra://a,,b/timer", "hosts"),
            ("cassandra://a:0/timer", "hosts"),
            ("cassandra://a:port/timer", "hosts"),
            ("cassandra://secret@a/timer", "user and password"),
            ("cassandra://u:secret/x@a/timer", "@"),
            ("cassandra://u:secret@a/timer?replication=0", "`replication`"),
            ("cassandra://u:secret@a/timer?replication=dc1:3,dc2", "`replication`"),
            ("cassandra://u:secret@a/timer?replication=dc'1:3", "`replication`"),
            ("cassandra://u:secret@a/timer?shards=0", "`shards`"),
            ("cassandra://u:secret@a/timer?datacenter=", "`datacenter`"),
            ("cassandra://u:secret@a/timer?sslmode=require", "`sslmode`"),
            ("cassandra://u:secret@a/timer?sslrootcert=/secret", "`sslmode`"),
            ("cassandra://u:secret@a/timer?sslmode=disable&sslcert=/secret&sslkey=/secret", "`sslmode`"),
            ("cassandra://u:secret@a/timer?sslmode=verify-ca&sslcert=/secret", "`sslkey`"),
            ("cassandra://u:secret@a/timer?sslmode=verify-ca&sslrootcert=", "`sslrootcert`"),
            ("cassandra://u:secret@a/timer?tls=on", "`tls`"),
        ] {
            let refused = CassandraOptions::parse(url).unwrap_err();
            assert!(refused.contains(named) && !refused.contains("secret"), "{url}: {refused}");
        }
    }
}
