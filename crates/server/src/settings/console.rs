use clap::Args;
use console::{ConsoleMode, ConsoleUrl, Payloads};

use crate::values::{Setting, choice};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Web console")]
pub struct ConsoleOptions {
    /// Whether there is a web console under /console: read-only shows everything that a key may see, and changes nothing
    #[arg(long, env = "CONSOLE", value_name = "MODE", value_parser = mode(), default_value = "on")]
    pub console: Console,
    /// The address under which people open the console, where a proxy stands in between, such as https://timers.example; with https, cookies are marked as secure
    #[arg(long, env = "CONSOLE_URL", value_name = "URL", value_parser = url())]
    pub console_url: Option<ConsoleUrl>,
    /// What the console shows of payloads, metadata and headers: shown, hidden (folded until they are opened) or off (never sent to a browser); unset means hidden, and shown for `timer dev`
    #[arg(long, env = "CONSOLE_PAYLOADS", value_name = "MODE", value_parser = payloads())]
    pub console_payloads: Option<Payloads>,
    /// Lets people log in over plain HTTP from other machines, where keys and cookies can be read on their way
    #[arg(long, env = "CONSOLE_INSECURE_COOKIE", value_name = "MODE", value_parser = switch(), default_value = "off")]
    pub console_insecure_cookie: Switch,
}

/// Whether there is a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Console {
    Served(ConsoleMode),
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

fn mode() -> Setting<Console> {
    choice(&["on", "read-only", "off"], |text| match text {
        "on" => Some(Console::Served(ConsoleMode::On)),
        "read-only" => Some(Console::Served(ConsoleMode::ReadOnly)),
        "off" => Some(Console::Off),
        _ => None,
    })
}

fn payloads() -> Setting<Payloads> {
    choice(&["shown", "hidden", "off"], |text| match text {
        "shown" => Some(Payloads::Shown),
        "hidden" => Some(Payloads::Hidden),
        "off" => Some(Payloads::Off),
        _ => None,
    })
}

fn switch() -> Setting<Switch> {
    choice(&["on", "off"], |text| match text {
        "on" => Some(Switch::On),
        "off" => Some(Switch::Off),
        _ => None,
    })
}

fn url() -> Setting<ConsoleUrl> {
    Setting::new(ConsoleUrl::parse)
}
