use std::net::IpAddr;

use api::{BasePath, BookUrl, RateLimit};
use clap::Args;
use domain::Invalid;

use crate::values::{Secret, Setting, number};

pub const API_KEY_CHARS_MIN: usize = 32;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Who may call, and where")]
pub struct ApiOptions {
    /// The administrator's key, sent as X-API-Key, at least 32 characters. `timer serve` needs one, `timer dev` makes one up. Keys for tenants are issued with `timer keys create`
    #[arg(long, env = "API_KEY", hide_env_values = true, value_name = "KEY", value_parser = api_key())]
    pub api_key: Option<Secret>,
    /// How many requests per second one key may make; unset means no limit. Every process counts for itself
    #[arg(long, env = "RATE_LIMIT", value_name = "COUNT", value_parser = number(1..=1_000_000_u32))]
    pub rate_limit: Option<u32>,
    /// How many requests one key may make at once after a pause; unset means those of one second
    #[arg(long, env = "RATE_LIMIT_BURST", value_name = "COUNT", value_parser = number(1..=1_000_000_u32))]
    pub rate_limit_burst: Option<u32>,
    /// How many connections one client address may have. All clients behind one proxy share its address: raise it there
    #[arg(
        long,
        env = "CONNECTIONS_PER_ADDRESS_MAX",
        value_name = "COUNT",
        value_parser = number(1..=1_000_000_usize),
        default_value_t = api::Limits::default().connections_per_address_max
    )]
    pub connections_per_address_max: usize,
    // Port 0 lets the system choose a free one; the start-up message says which.
    /// Port of the HTTP API
    #[arg(long, env = "PORT", value_name = "PORT", value_parser = number(0..=u16::MAX), default_value = super::PORT)]
    pub port: u16,
    /// Path under which everything is served, such as /timers-api, for a proxy that does not remove it; unset means none
    #[arg(long, env = "BASE_PATH", value_name = "PATH", value_parser = base_path())]
    pub base_path: Option<BasePath>,
    /// Address of the book (docs/book), such as https://docs.example/timer/, for the link at the end of /docs; unset means no link
    #[arg(long, env = "BOOK_URL", value_name = "URL", value_parser = book_url())]
    pub book_url: Option<BookUrl>,
    /// Address of the HTTP API; unset means 0.0.0.0, and 127.0.0.1 for `timer dev`
    #[arg(long, env = "BIND", value_name = "ADDRESS", value_parser = ip_address())]
    pub bind: Option<IpAddr>,
}

impl ApiOptions {
    /// How many requests a key may make, where that is limited.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        let per_second = self.rate_limit?;
        Some(RateLimit { per_second, burst: self.rate_limit_burst.unwrap_or(per_second) })
    }
}

fn api_key() -> Setting<Secret> {
    Setting::new(|setting, key| {
        let rule = if key.chars().count() < API_KEY_CHARS_MIN {
            format!("must have at least {API_KEY_CHARS_MIN} characters")
        } else if !key.bytes().all(|b| matches!(b, 0x21..=0x7e)) {
            "must be printable ASCII without blanks, because it travels in a header".to_owned()
        } else {
            return Ok(Secret::new(key.to_owned()));
        };
        Err(Invalid::new(setting, rule))
    })
}

pub fn base_path() -> Setting<BasePath> {
    Setting::new(BasePath::parse)
}

fn book_url() -> Setting<BookUrl> {
    Setting::new(BookUrl::parse)
}

fn ip_address() -> Setting<IpAddr> {
    Setting::new(|setting, text| {
        text.parse().map_err(|_| Invalid::new(setting, "must be an IP address such as 0.0.0.0 or 127.0.0.1"))
    })
}
