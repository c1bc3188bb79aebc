//! Every command with its arguments and options, as clap knows them.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use super::cell;
use crate::cli::Cli;

/// Options that many commands have, by the heading under which they stand in the help; described once.
const SHARED: [&str; 2] = ["Output", "The service that is asked"];
/// A command whose shared options are described for all.
const MODEL: &str = "list";
/// Commands whose options are the settings of the service, which have a page of their own.
const SERVICES: [&str; 2] = ["serve", "dev"];

pub(super) fn sections() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = "## Options of many commands\n".to_owned();
    let model = root.find_subcommand(MODEL).expect("a command that asks a service");
    for heading in SHARED {
        let is_shown = |arg: &&Arg| arg.get_help_heading() == Some(heading) && !arg.is_hide_set();
        let options: Vec<&Arg> = model.get_arguments().filter(is_shown).collect();
        write!(text, "\n### {heading}\n\n{}", table(&options)).expect("text");
    }
    for command in root.get_subcommands() {
        text.push_str(&section("timer", command));
    }
    text
}

/// A command, and the commands below it.
fn section(above: &str, command: &Command) -> String {
    if command.get_name() == "help" {
        return String::new();
    }
    let name = format!("{above} {}", command.get_name());
    let below: Vec<String> = command.get_subcommands().map(|below| section(&name, below)).collect();
    if !below.is_empty() {
        return below.concat();
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = format!("\n## {name}\n\n{}.\n\n```text\n{usage}\n```\n", cell(&about));
    let is_service = SERVICES.contains(&command.get_name());
    let options: Vec<&Arg> = command.get_arguments().filter(|arg| is_own(arg, is_service)).collect();
    if !options.is_empty() {
        write!(text, "\n{}", table(&options)).expect("text");
    }
    if is_service {
        text.push_str("\nAnd every [setting](settings.md).\n");
    }
    text
}

/// Whether an argument is described with its command.
fn is_own(arg: &Arg, is_service: bool) -> bool {
    let heading = arg.get_help_heading();
    let is_shared = heading.is_some_and(|heading| SHARED.contains(&heading));
    let is_help = matches!(arg.get_id().as_str(), "help" | "version");
    let is_setting = is_service && arg.get_env().is_some();
    !(is_shared || is_help || is_setting || arg.is_hide_set())
}

fn table(options: &[&Arg]) -> String {
    let mut text = "| option | meaning |\n|---|---|\n".to_owned();
    for arg in options {
        let mut names = arg.to_string();
        if let (Some(short), false) = (arg.get_short(), arg.is_positional()) {
            names = if arg.get_long().is_some() { format!("-{short}, {names}") } else { names };
        }
        writeln!(text, "| `{}` | {} |", names.replace('|', "\\|"), meaning(arg)).expect("text");
    }
    text
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![cell(&help)];
    let values: Vec<String> = arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    // A flag has the values true and false, which no help shows.
    if arg.get_action().takes_values() && !values.is_empty() {
        parts.push(format!("one of {}", values.join(", ")));
    }
    if let Some(variable) = arg.get_env().and_then(|name| name.to_str()) {
        parts.push(format!("variable `{variable}`"));
    }
    let default = arg.get_default_values().first().and_then(|value| value.to_str());
    if let Some(default) = default.filter(|_| arg.get_action().takes_values()) {
        parts.push(format!("default `{default}`"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}
