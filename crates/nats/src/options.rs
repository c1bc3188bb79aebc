use std::fmt;

use async_nats::ServerAddr;
use domain::Invalid;
use url::{Host, Url};

const PORT: u16 = 4222;
const ADDRESSES: &str = "must be addresses like nats://host:4222 or tls://host:4222, separated by commas; \
                         special characters in a user name or password have to be percent-encoded";

/// The addresses of the servers, and the credentials.
///
/// The credentials are kept apart from the addresses, which appear in the library's logs.
#[derive(Clone)]
pub struct Options {
    pub(crate) servers: Vec<ServerAddr>,
    pub(crate) login: Login,
    pub(crate) tls: bool,
    /// The names of the settings that hold the credentials.
    pub(crate) settings: String,
    /// The trusted certificate authorities, instead of those of the machine.
    pub(crate) roots: Option<rustls::RootCertStore>,
    place: String,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    Anonymous,
    Token(String),
    User { name: String, password: String },
}

impl Options {
    /// Parses the addresses of one server or of several in a cluster: `nats://user:password@h:4222,nats://h2`, `tls://h`, or
    /// with a token `nats://token@h`. Credentials that only some addresses have are used for all. `variable` is the name of the
    /// setting.
    pub fn from_url(variable: &str, url: &str) -> Result<Self, Invalid> {
        let refuse = |rule: &str| Invalid::new(variable, rule);
        let urls =
            url.split(',').map(|part| parse(part.trim()).ok_or_else(|| refuse(ADDRESSES))).collect::<Result<Vec<_>, _>>()?;
        let tls = urls.iter().any(|url| url.scheme() == "tls");
        if tls && urls.iter().any(|url| url.scheme() != "tls") {
            return Err(refuse("must not mix nats:// with tls://"));
        }
        let mut login = Login::Anonymous;
        for url in &urls {
            match login_of(url).ok_or_else(|| refuse(ADDRESSES))? {
                Login::Anonymous => {}
                found if login == Login::Anonymous || login == found => login = found,
                _ => return Err(refuse("must not name different users")),
            }
        }
        let places = urls.iter().map(place).collect::<Option<Vec<_>>>().ok_or_else(|| refuse(ADDRESSES))?;
        Self::of(&places, tls, login, format!("the credentials in {variable}")).ok_or_else(|| refuse(ADDRESSES))
    }

    /// The same from the settings `NATS_HOST`, `NATS_PORT`, `NATS_USER` and `NATS_PASSWORD`. A password may contain any
    /// character here.
    pub fn from_parts(host: &str, port: u16, user: Option<&str>, password: Option<&str>) -> Result<Self, Invalid> {
        let refused = || Invalid::new("NATS_HOST", "must be a host name or an address, without a port");
        let present = |text: &&str| !text.is_empty();
        let login = match (user.filter(present), password.filter(present)) {
            (None, None) => Login::Anonymous,
            (Some(user), password) => Login::User { name: user.to_owned(), password: password.unwrap_or_default().to_owned() },
            (None, Some(_)) => return Err(Invalid::new("NATS_USER", "is required with NATS_PASSWORD")),
        };
        let host = host.trim();
        let host = if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() };
        let url = parse(&format!("nats://{host}:{port}")).ok_or_else(refused)?;
        if login_of(&url) != Some(Login::Anonymous) {
            return Err(refused());
        }
        let place = place(&url).ok_or_else(refused)?;
        Self::of(&[place], false, login, "NATS_USER and NATS_PASSWORD".to_owned()).ok_or_else(refused)
    }

    /// The hosts and ports, for logs and health.
    pub fn place(&self) -> String {
        self.place.clone()
    }

    fn of(places: &[String], tls: bool, login: Login, settings: String) -> Option<Self> {
        let scheme = if tls { "tls" } else { "nats" };
        let servers = places.iter().map(|place| format!("{scheme}://{place}").parse().ok()).collect::<Option<_>>()?;
        Some(Self { servers, login, tls, settings, roots: None, place: places.join(", ") })
    }

    /// The same, trusting these authorities.
    #[cfg(test)]
    pub(crate) fn trusting(self, roots: rustls::RootCertStore) -> Self {
        Self { roots: Some(roots), ..self }
    }
}

/// Parses one address; `None` when parts are missing or superfluous.
fn parse(text: &str) -> Option<Url> {
    let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("nats://{text}")) }.ok()?;
    let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    (matches!(url.scheme(), "nats" | "tls") && is_bare).then_some(url)
}

/// The host and port.
fn place(url: &Url) -> Option<String> {
    let host = match url.host()? {
        Host::Domain(name) => {
            let is_plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
            is_plain.then(|| name.to_owned())?
        }
        address => address.to_string(),
    };
    match url.port() {
        Some(0) => None,
        port => Some(format!("{host}:{}", port.unwrap_or(PORT))),
    }
}

fn login_of(url: &Url) -> Option<Login> {
    let user = percent_decoded(url.username())?;
    Some(match url.password() {
        None if user.is_empty() => Login::Anonymous,
        None => Login::Token(user),
        Some(_) if user.is_empty() => return None,
        Some(password) => Login::User { name: user, password: percent_decoded(password)? },
    })
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = if *first == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
            after
        } else {
            bytes.push(*first);
            after
        };
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = match self.login {
            Login::Anonymous => "anonymous",
            Login::Token(_) => "a token",
            Login::User { .. } => "a user",
        };
        f.debug_struct("Options").field("place", &self.place).field("tls", &self.tls).field("login", &login).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, password: &str) -> Login {
        Login::User { name: name.to_owned(), password: password.to_owned() }
    }

    fn read(url: &str) -> Options {
        Options::from_url("NATS_URL", url).unwrap_or_else(|refusal| panic!("{url}: {refusal}"))
    }

    #[test]
    fn addresses_are_read_and_credentials_taken_out_of_them() {
        for (url, place, tls, login) in [
            ("nats://h", "h:4222", false, Login::Anonymous),
            ("nats://h/", "h:4222", false, Login::Anonymous),
            ("h", "h:4222", false, Login::Anonymous),
            ("h:4333", "h:4333", false, Login::Anonymous),
            ("tls://nats.example.com:443", "nats.example.com:443", true, Login::Anonymous),
            ("nats://10.0.0.1:1", "10.0.0.1:1", false, Login::Anonymous),
            ("nats://[::1]:4222", "[::1]:4222", false, Login::Anonymous),
            ("nats://s3cret@h", "h:4222", false, Login::Token("s3cret".to_owned())),
            ("nats://u:p@h:4222,nats://h2", "h:4222, h2:4222", false, user("u", "p")),
            ("nats://h, nats://u:p@h2 ,nats://u:p@h3", "h:4222, h2:4222, h3:4222", false, user("u", "p")),
            ("tls://u:p%40%2C%2f%25%C3%A9@h", "h:4222", true, user("u", "p@,/%é")),
            ("u:p@h", "h:4222", false, user("u", "p")),
            ("nats://u:p@x@h", "h:4222", false, user("u", "p@x")),
            ("nats://u:@h", "h:4222", false, Login::Token("u".to_owned())),
        ] {
            let options = read(url);
            assert_eq!((options.place().as_str(), options.tls), (place, tls), "{url}");
            assert!(options.login == login, "{url}");
            for server in &options.servers {
                assert!(!server.has_user_pass() && server.password().is_none(), "{url}");
                assert_eq!(server.tls_required(), tls);
            }
        }
    }

    #[test]
    fn bad_addresses_are_refused_without_being_repeated() {
        for url in [
            "",
            ",",
            "nats://",
            "nats://u:hunter2@",
            "nats://u:hunter2@h:70000",
            "nats://u:hunter2@h:0",
            "http://u:hunter2@h",
            "ws://u:hunter2@h",
            "nats://u:hunter2@h/path",
            "nats://u:hunter2@h?x=1",
            "nats://u:hunter2@h#x",
            "nats://u:hun,ter2@h",
            "nats://u:hunter2%ff@h",
            "nats://u:hunter2%4@h",
            "nats://:hunter2@h",
            "nats://u:hunter2@h,tls://h2",
            "nats://u:hunter2@h,nats://u:hunter3@h2",
            "nats://u:hunter2@h h",
            "nats://u:hunter2@h*",
        ] {
            let refusal = Options::from_url("NATS_URL", url).expect_err(url);
            assert_eq!(refusal.field, "NATS_URL");
            assert!(refusal.rule.starts_with("must "), "{refusal}");
            assert!(!refusal.rule.contains("hun"), "{refusal}");
        }
    }

    #[test]
    fn parts_take_any_password() {
        let odd = "p@ss,w%rd:/ #é";
        let options = Options::from_parts("h", 4222, Some("u"), Some(odd)).unwrap();
        assert!(options.login == user("u", odd));
        assert_eq!(options.place(), "h:4222");
        assert_eq!(Options::from_parts("::1", 1, None, None).unwrap().place(), "[::1]:1");
        assert!(Options::from_parts("h", 1, Some(""), Some("")).unwrap().login == Login::Anonymous);
        for host in ["", " ", "h:4222", "a,b", "u@h", "nats://h", "h/x", "h h"] {
            let refusal = Options::from_parts(host, 4222, None, None).expect_err(host);
            assert_eq!(refusal.to_string(), "NATS_HOST must be a host name or an address, without a port");
        }
        let refusal = Options::from_parts("h", 4222, None, Some("hunter2")).unwrap_err();
        assert_eq!(refusal.to_string(), "NATS_USER is required with NATS_PASSWORD");
    }

    #[test]
    fn credentials_are_not_shown() {
        for url in ["nats://joe:hunter2@h", "nats://hunter2@h"] {
            let shown = format!("{:?}", read(url));
            assert!(!shown.contains("hunter2") && !shown.contains("joe"), "{shown}");
        }
    }
}
