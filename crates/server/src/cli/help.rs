//! What `--help` shows of every command, compared with the files in `help/`. `UPDATE_HELP=1` writes them anew.

use std::{collections::BTreeMap, path::Path};

use clap::CommandFactory;

use super::Cli;

const WIDTH: usize = 100;

/// The same on every machine: neither its terminal nor its environment shows.
fn reproducible(command: clap::Command) -> clap::Command {
    command.term_width(WIDTH).mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(reproducible)
}

/// The help of a command and of those below it, by the name of a file.
fn collect(command: &clap::Command, name: &str, found: &mut BTreeMap<String, String>) {
    let text = command.clone().render_long_help().to_string();
    let lines: Vec<_> = text.trim_end().lines().map(str::trim_end).collect();
    found.insert(format!("{name}.txt"), format!("{}\n", lines.join("\n")));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        collect(below, &format!("{name}-{}", below.get_name()), found);
    }
}

#[test]
fn the_help_of_every_command_is_as_it_was_written_down() {
    let mut command = reproducible(Cli::command());
    command.build();
    let mut shown = BTreeMap::new();
    collect(&command, "timer", &mut shown);
    // It is there with a feature only.
    shown.retain(|name, _| !name.starts_with("timer-bench"));
    if let Some(text) = shown.get_mut("timer.txt") {
        *text = text.lines().filter(|line| !line.starts_with("  bench ")).map(|line| format!("{line}\n")).collect();
    }

    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/help");
    if std::env::var_os("UPDATE_HELP").is_some() {
        for old in std::fs::read_dir(&directory).unwrap() {
            std::fs::remove_file(old.unwrap().path()).unwrap();
        }
        for (name, text) in &shown {
            std::fs::write(directory.join(name), text).unwrap();
        }
        return;
    }
    let read = |entry: std::fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), std::fs::read_to_string(entry.path()).unwrap())
    };
    let written: BTreeMap<_, _> = std::fs::read_dir(&directory).unwrap().map(|entry| read(entry.unwrap())).collect();
    assert_eq!(written.keys().collect::<Vec<_>>(), shown.keys().collect::<Vec<_>>(), "`UPDATE_HELP=1` writes them anew");
    for (name, text) in &shown {
        assert_eq!(Some(text), written.get(name), "{name}: `UPDATE_HELP=1` writes it anew");
    }
}
