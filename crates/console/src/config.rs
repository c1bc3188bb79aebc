//! What the server brings.

use std::{fmt, sync::Arc, time::Duration};

use axum::response::Response;
use commands::{Commands, Filter, NewTimerRequest, Patch};
use dev::DevTools;
use domain::{Caller, Clock, Invalid};
use tokio_util::sync::CancellationToken;
use url::Url;

/// How the console is set up.
#[derive(Clone)]
pub struct ConsoleConfig {
    /// The administrator's key: it logs in, and the key that signs cookies is derived from it.
    pub api_key: String,
    /// What stands before `/console` in every link.
    pub base_path: String,
    pub mode: ConsoleMode,
    /// The address that people open, where a proxy stands in between.
    pub url: Option<ConsoleUrl>,
    /// Whether plain HTTP may carry the cookie beyond this machine.
    pub insecure_cookie: bool,
    pub payloads: Payloads,
    pub version: String,
    /// The kind of the database and where it is, without credentials.
    pub store: String,
    /// What the page about this installation lists: name and value, secrets masked.
    pub settings: Vec<(String, String)>,
    /// What is said of the health beside the database.
    pub health: Vec<HealthProbe>,
    /// Writes exports; without it there are none.
    pub export: Option<Export>,
    /// The clock of the machine, by which sessions end: `timer dev` moves that of the timers.
    pub clock: Arc<dyn Clock>,
    /// Counts one request of a key, as the API does; refused with how long to wait.
    pub rate: RateCheck,
    /// Reads timers as the API does, for those who write JSON instead of filling in a form.
    pub reader: TimerReader,
    /// Verifies signatures of calls.
    pub verify: VerifySignature,
    /// There in `timer dev`, and only there.
    pub development: Option<Development>,
    /// The receiver and the clock of `timer dev`.
    pub dev: Option<DevTools>,
    /// Ends the streams of live pages.
    pub stop: CancellationToken,
}

/// Whether the console changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConsoleMode {
    #[default]
    On,
    /// Whatever the key of a viewer permits.
    ReadOnly,
}

/// What is shown of payloads, metadata and headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Payloads {
    Shown,
    /// Folded until a viewer opens them.
    #[default]
    Hidden,
    /// Not sent to browsers at all.
    Off,
}

/// Gives the timers that a caller may see and that match, as a file of this format; `None` if there is no such format.
pub type Export = Arc<dyn Fn(Commands, Filter, &str) -> Option<Response> + Send + Sync>;

pub type RateCheck = Arc<dyn Fn(&Caller) -> Result<(), Duration> + Send + Sync>;

/// The bodies of `POST /timers` and `PUT /timers/{id}`.
#[derive(Clone)]
pub struct TimerReader {
    pub new_timer: fn(&str) -> Result<NewTimerRequest, Invalid>,
    pub patch: fn(&str) -> Result<Patch, Invalid>,
}

/// What a receiver has got, and the secret that a viewer believes it was signed with.
#[derive(Debug, Clone, Copy)]
pub struct SignedCall<'a> {
    pub secret: &'a str,
    pub webhook_id: &'a str,
    pub timestamp: &'a str,
    pub body: &'a str,
    pub signature: &'a str,
}

/// Whether the signature is that of the call; refused where the secret is none.
pub type VerifySignature = fn(&SignedCall<'_>) -> Result<bool, Invalid>;

/// What `timer dev` adds.
#[derive(Debug, Clone)]
pub struct Development {
    /// Where its receiver listens, for the first timer of a new user.
    pub receiver: String,
    /// Logs in once, as the administrator.
    pub login_token: Option<String>,
}

/// One thing that is checked.
#[derive(Clone)]
pub struct HealthProbe {
    pub name: &'static str,
    pub read: Arc<dyn Fn() -> HealthReading + Send + Sync>,
}

#[derive(Debug, Clone)]
pub struct HealthReading {
    pub value: String,
    pub is_well: bool,
}

/// The public address of the console: its origin, and whether browsers reach it over TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleUrl {
    origin: String,
    is_https: bool,
}

impl ConsoleUrl {
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let rule = || Invalid::new(field, "must be an address such as https://timers.example, without a path");
        let url = Url::parse(text).map_err(|_| rule())?;
        let is_plain = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        let has_login = !url.username().is_empty() || url.password().is_some();
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() || !is_plain || has_login {
            return Err(rule());
        }
        Ok(Self { origin: url.origin().ascii_serialization(), is_https: url.scheme() == "https" })
    }

    /// Scheme, host, and port where it is not the usual one.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub const fn is_https(&self) -> bool {
        self.is_https
    }
}

impl fmt::Debug for ConsoleConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleConfig").field("mode", &self.mode).field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_is_an_origin() {
        for (text, origin, is_https) in [
            ("https://timers.example", "https://timers.example", true),
            ("https://timers.example/", "https://timers.example", true),
            ("HTTPS://Timers.Example:443", "https://timers.example", true),
            ("http://10.0.0.7:8080", "http://10.0.0.7:8080", false),
        ] {
            let url = ConsoleUrl::parse("CONSOLE_URL", text).unwrap();
            assert_eq!((url.origin(), url.is_https()), (origin, is_https), "{text}");
        }
        for text in ["", "timers.example", "ftp://a", "https://u:p@a", "https://a/console", "https://a?b", "https://a#b"] {
            let refusal = ConsoleUrl::parse("CONSOLE_URL", text).unwrap_err().to_string();
            assert!(refusal.starts_with("CONSOLE_URL must be an address"), "{text}: {refusal}");
        }
    }
}
