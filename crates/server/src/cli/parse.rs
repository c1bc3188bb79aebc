//! From the command line and the environment to a command.

use std::{collections::BTreeSet, ffi::OsString};

use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches};

use super::{Cli, Command};
use crate::{exit::Failure, values::sentence_of};

/// Reads `.env` from the current directory or one above it, if there is one. What the environment says already wins.
pub fn read_dotenv() -> Result<(), Failure> {
    match dotenvy::dotenv() {
        Ok(_) => Ok(()),
        Err(error) if error.not_found() => Ok(()),
        Err(dotenvy::Error::LineParse(_, column)) => {
            // The line itself is not shown: it may hold a secret.
            Err(Failure::Configuration(format!(".env has a line that cannot be read (at its character {column}).").into()))
        }
        Err(error) => Err(Failure::configuration(format!(".env cannot be read: {error}."), error)),
    }
}

/// The command that the program was started with. Help, and a command line that cannot be understood, end the program here.
pub fn parse() -> Result<Command, Failure> {
    try_parse(std::env::args_os()).map_err(|error| match sentence_of(&error) {
        Some(sentence) => Failure::Configuration(sentence.into()),
        None => error.exit(),
    })
}

/// A setting that is empty counts as not set: that is how compose files and scripts leave settings out. No other code
/// knows it: what is parsed has no empty settings any more.
pub fn try_parse(args: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Command, clap::Error> {
    let mut command = without_empty_variables(Cli::command());
    let args = without_empty_flags(args.into_iter().map(Into::into), &setting_flags(&Cli::command()));
    let matches = command.try_get_matches_from_mut(args)?;
    let mut parsed = Cli::from_arg_matches(&matches)?.command;
    let options = match &mut parsed {
        Command::Serve(options) => Some(options),
        Command::Dev(options) => Some(&mut options.service),
        _ => None,
    };
    if let Some(options) = options {
        options.effective = effective(&command, &matches);
    }
    Ok(parsed)
}

/// Every setting of the command with the value that holds, for people to look at.
fn effective(command: &clap::Command, matches: &ArgMatches) -> Vec<(String, String)> {
    let Some((name, given)) = matches.subcommand() else { return Vec::new() };
    let described = |arg: &Arg| {
        let variable = arg.get_env()?.to_string_lossy().into_owned();
        let raw = given.get_raw(arg.get_id().as_str()).and_then(|mut values| values.next());
        let value = raw.map(|value| value.to_string_lossy().into_owned()).unwrap_or_default();
        let is_masked = arg.is_hide_env_values_set() && !value.is_empty();
        Some((variable, if is_masked { MASK.to_owned() } else { value }))
    };
    let settings = command.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    settings.filter_map(described).collect()
}

/// Stands for a secret that is set.
const MASK: &str = "••••••••";

fn without_empty_variables(command: clap::Command) -> clap::Command {
    command.mut_args(without_empty_variable).mut_subcommands(without_empty_variables)
}

fn without_empty_variable(arg: Arg) -> Arg {
    let Some(variable) = arg.get_env().map(ToOwned::to_owned) else { return arg };
    if !std::env::var_os(&variable).is_some_and(|value| value.is_empty()) {
        return arg;
    }
    // Clap has no way to keep the name without the value. Help shows the variable all the same.
    let help = format!("{} [env: {}=]", arg.get_help().cloned().unwrap_or_default(), variable.display());
    arg.env(None::<&'static str>).help(help)
}

/// The flags of all settings: of everything that can be given in the environment as well.
fn setting_flags(command: &clap::Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter(|arg| arg.get_env().is_some());
    let mut flags: BTreeSet<_> = own.filter_map(|arg| arg.get_long().map(|long| format!("--{long}"))).collect();
    command.get_subcommands().for_each(|command| flags.extend(setting_flags(command)));
    flags
}

/// Leaves out `--flag ""` and `--flag=`.
fn without_empty_flags(args: impl Iterator<Item = OsString>, flags: &BTreeSet<String>) -> Vec<OsString> {
    let is_setting = |flag: &str| flags.contains(flag);
    let mut kept = Vec::new();
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if is_setting(text) && args.next_if(|value| value.is_empty()).is_some() {
            continue;
        }
        if text.strip_suffix('=').is_some_and(is_setting) {
            continue;
        }
        kept.push(arg);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verify_cli() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_holds_is_told_without_secrets() {
        let key = "0123456789abcdef0123456789abcdef";
        let Ok(Command::Serve(options)) = try_parse(["timer", "serve", "--api-key", key, "--port", "81"]) else {
            panic!("it was told to serve")
        };
        let value = |name: &str| options.effective.iter().find(|(named, _)| named == name).map(|(_, value)| value.as_str());
        assert_eq!((value("PORT"), value("API_KEY"), value("RETENTION")), (Some("81"), Some(MASK), Some("30d")));
        assert!(!format!("{:?}", options.effective).contains(key));
    }

    #[test]
    fn an_empty_flag_of_a_setting_is_left_out_and_no_other() {
        let flags = setting_flags(&Cli::command());
        for (args, kept) in [
            (vec!["serve", "--port", ""], vec!["serve"]),
            (vec!["serve", "--port=", "--bind", "::1"], vec!["serve", "--bind", "::1"]),
            (vec!["serve", "--port", "1"], vec!["serve", "--port", "1"]),
            (vec!["keys", "create", "", "--namespace", ""], vec!["keys", "create", "", "--namespace", ""]),
        ] {
            assert_eq!(without_empty_flags(args.into_iter().map(OsString::from), &flags), kept);
        }
    }
}
