//! `.env.example` and `docs/book/src/reference/settings.md`, generated from the declarations of the settings. The test below compares them with
//! the files of the repository, or writes them.

use std::{collections::BTreeSet, fmt::Write, path::Path};

use clap::{Arg, CommandFactory};

use crate::{
    cli::{self, Cli},
    values::sentence_of,
};

/// The commands whose settings are described, in this order; one that several of them have is described once.
const COMMANDS: [&str; 2] = ["serve", "status"];

const LINE_CHARS_MAX: usize = 118;

/// One setting, as users see it.
struct Described {
    group: String,
    variable: String,
    flag: String,
    default: String,
    /// What its value must be, as the refusal of a bad one says it.
    rule: String,
    help: String,
}

fn described() -> Vec<Described> {
    let commands = Cli::command();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for name in COMMANDS {
        let command = commands.find_subcommand(name).expect("a command of this name");
        let settings = command.get_arguments().filter_map(|arg| describe(name, arg));
        all.extend(settings.filter(|setting| seen.insert(setting.variable.clone())));
    }
    all
}

fn describe(command: &str, arg: &Arg) -> Option<Described> {
    let variable = arg.get_env()?.to_str().expect("a plain name").to_owned();
    let flag = format!("--{}", arg.get_long().expect("every setting has a flag"));
    let default = arg.get_default_values().first().map(|value| value.to_str().expect("plain text").to_owned());
    Some(Described {
        group: arg.get_help_heading().expect("every setting belongs to a group").to_owned(),
        rule: rule(command, &flag, &variable),
        help: arg.get_help().expect("every setting has help").to_string(),
        default: default.unwrap_or_default(),
        variable,
        flag,
    })
}

/// What is said of a value that hardly any setting can have.
fn rule(command: &str, flag: &str, variable: &str) -> String {
    let refused = cli::try_parse(["timer", command, &format!("{flag}=\u{1}")]).err();
    let sentence = refused.as_ref().and_then(sentence_of).unwrap_or_default();
    let rule = sentence.strip_prefix(variable).unwrap_or_default().trim().trim_end_matches('.');
    // Some rules end with the value that was refused.
    rule.split(", not ").next().unwrap_or_default().to_owned()
}

fn env_example() -> String {
    let mut text = String::new();
    let mut group = String::new();
    comment(
        &mut text,
        "Settings of `timer`, with their defaults. Copy this file to .env and uncomment what you change. Flags win over \
         variables, variables over this file.",
    );
    comment(&mut text, GENERATED);
    for setting in described() {
        if group != setting.group {
            group.clone_from(&setting.group);
            write!(text, "\n# --- {group} ---\n").expect("text");
        }
        text.push('\n');
        comment(&mut text, &format!("{}.{}", setting.help, sentence(&setting.rule)));
        writeln!(text, "# {}={}", setting.variable, setting.default).expect("text");
    }
    text
}

const GENERATED: &str =
    "Generated from crates/server/src/settings; to update: `UPDATE=1 cargo test -p server --bin timer generated_files`.";

/// The rule as a sentence of its own that follows another one.
fn sentence(rule: &str) -> String {
    let mut chars = rule.chars();
    chars.next().map(|first| format!(" {}{}.", first.to_uppercase(), chars.as_str())).unwrap_or_default()
}

/// Appends a comment, wrapped.
fn comment(text: &mut String, words: &str) {
    let mut line = "#".to_owned();
    for word in words.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > LINE_CHARS_MAX {
            text.push_str(&line);
            text.push('\n');
            line = "#".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

fn reference() -> String {
    let mut text = format!(
        "# Settings\n\n\
         <!-- {GENERATED} -->\n\n\
         For operators. Flags win over environment variables, variables over `.env` in the current directory or the nearest one above it. An\n\
         empty value counts as not set. A value that breaks its rule ends the start with one sentence that names the setting, and\n\
         exit code 2. The chapter [Run it](../run/production.md) says what the settings\n\
         mean in practice.\n"
    );
    let mut group = String::new();
    for setting in described() {
        if group != setting.group {
            group.clone_from(&setting.group);
            write!(text, "\n## {group}\n\n| setting | default | rule | meaning |\n|---|---|---|---|\n").expect("text");
        }
        let code = |text: &str| if text.is_empty() { "–".to_owned() } else { format!("`{text}`") };
        let rule = if setting.rule.is_empty() { "–" } else { setting.rule.as_str() };
        let Described { variable, flag, default, help, .. } = &setting;
        let row = [format!("`{variable}`, `{flag}`"), code(default), rule.to_owned(), help.clone()];
        let row = row.map(|cell| cell.replace('|', "\\|").replace('<', "&lt;"));
        writeln!(text, "| {} |", row.join(" | ")).expect("text");
    }
    text
}

#[test]
fn generated_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, text) in [(".env.example", env_example()), ("docs/book/src/reference/settings.md", reference())] {
        let file = root.join(name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &text).expect("a file that can be written");
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == text, "{name} is not what the settings declare. {GENERATED}");
    }
}
