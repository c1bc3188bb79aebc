//! `timer login`: a profile for a service, once its key has been tried.

use std::io::{BufRead, Write};

use clap::Args;
use client::Client;
use ratatui::crossterm::{
    event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    terminal::{disable_raw_mode, enable_raw_mode},
};

use crate::{Context, Failure, output::say, profile};

/// The exit code of a command that was interrupted.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Clone, Args)]
pub struct LoginOptions {
    /// Where the service is, such as https://timers.example.com
    #[arg(value_name = "URL")]
    pub url: String,
    /// What the profile is called; the name of the host unless given
    #[arg(long)]
    pub name: Option<String>,
}

/// Asks for a key, or reads it from standard input, and keeps it in a file that only its owner can read.
pub async fn run(options: &LoginOptions, context: &Context) -> Result<(), Failure> {
    let LoginOptions { url, name } = options;
    let name = match name {
        Some(name) => name.clone(),
        None => host(url)?,
    };
    profile::checked_name(&name)?;
    let key = if context.surroundings.is_interactive { asked(url)? } else { first_line()? };
    let caller = Client::new(url, &key)?.whoami().await?;
    profile::keep(&name, url, &key, context)?;
    let namespaces = caller.namespaces.map_or_else(|| "all namespaces".to_owned(), |names| names.join(", "));
    say(format_args!("{name} is {url}, as {} ({}: {namespaces}).", caller.name, caller.rights));
    Ok(())
}

fn host(url: &str) -> Result<String, Failure> {
    let uri: Result<http::Uri, _> = url.parse();
    let host = uri.ok().and_then(|uri| uri.host().map(str::to_owned));
    host.ok_or_else(|| Failure::usage(format!("{url} is not the URL of a service")))
}

fn first_line() -> Result<String, Failure> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    match line.trim() {
        "" => Err(Failure::usage("the API key is missing on standard input")),
        key => Ok(key.to_owned()),
    }
}

/// Without showing what is typed.
fn asked(url: &str) -> Result<String, Failure> {
    let mut error = std::io::stderr();
    write!(error, "API key for {url}: ").and_then(|()| error.flush())?;
    enable_raw_mode()?;
    let typed = typed();
    disable_raw_mode()?;
    writeln!(error)?;
    typed
}

fn typed() -> Result<String, Failure> {
    let mut key = String::new();
    loop {
        match event::read()? {
            Event::Key(pressed) if pressed.kind != KeyEventKind::Release => match pressed.code {
                KeyCode::Enter if key.is_empty() => return Err(Failure::usage("the API key is missing")),
                KeyCode::Enter => return Ok(key),
                KeyCode::Char('c' | 'd') if pressed.modifiers.contains(KeyModifiers::CONTROL) => {
                    return Err(Failure::new(INTERRUPTED, ""));
                }
                KeyCode::Backspace => _ = key.pop(),
                KeyCode::Char(letter) => key.push(letter),
                _ => {}
            },
            Event::Paste(text) => key.push_str(text.trim()),
            _ => {}
        }
    }
}
