//! `timer open` and `timer docs`: pages of the service in a browser.

use std::process::{Command, Stdio};

use clap::Args;

use crate::{
    ConnectionOptions, Context, Failure,
    output::{print, say},
    read::OneTimer,
};

#[derive(Debug, Clone, Args)]
pub struct OpenOptions {
    #[command(flatten)]
    pub timer: OneTimer,
    #[command(flatten)]
    pub page: PageOptions,
}

#[derive(Debug, Clone, Args)]
pub struct PageOptions {
    /// Print the URL, and open nothing
    #[arg(long)]
    pub print: bool,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// The page of a timer in the console, which asks for a key of its own.
pub async fn timer(options: &OpenOptions, context: &Context) -> Result<(), Failure> {
    let client = options.page.connection.client(context)?;
    let id = client.timers().get(options.timer.reference()).await?.timer.id;
    show(&format!("{}/console/timers/{id}", client.url()), &options.page, context)
}

/// The reference of the API.
pub fn docs(options: &PageOptions, context: &Context) -> Result<(), Failure> {
    show(&format!("{}/docs", options.connection.url(context)?), options, context)
}

/// Without a terminal there is no one to look at a page: the URL is printed for what comes next.
fn show(url: &str, options: &PageOptions, context: &Context) -> Result<(), Failure> {
    if options.print || !context.surroundings.is_terminal {
        return print(format_args!("{url}"));
    }
    let chosen = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut browser = Command::new(chosen.as_deref().unwrap_or(usual));
    match browser.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(_) => say(format_args!("{url} is opened.")),
        Err(_) => say(format_args!("There is no browser here: open {url}")),
    }
    Ok(())
}
