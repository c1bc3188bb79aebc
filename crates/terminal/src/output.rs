//! How answers are printed.

use std::{collections::BTreeMap, fmt, io::Write};

use clap::{Args, ValueEnum};
use client::Json;
use serde_json::{Map, Value};

use crate::{
    Context, Failure,
    rows::{self, Zone},
};

/// What lists show.
pub const COLUMNS: [&str; 8] = ["status", "id", "key", "namespace", "execute_at", "time_left", "callback_type", "updated_at"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// What the service answered, unchanged
    Json,
    /// One JSON object a line
    Ndjson,
    Csv,
    /// Only the id of each timer
    Id,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// A table on a terminal and NDJSON elsewhere, unless given
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<Format>,
    /// The members that tables and CSV show, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Show times of tables in UTC
    #[arg(long, conflicts_with = "zone")]
    pub utc: bool,
    /// Show times of tables in this zone: local, utc or an offset such as +02:00
    #[arg(long, value_name = "ZONE", value_parser = Zone::parse, default_value = "local", allow_hyphen_values = true)]
    pub zone: Zone,
}

impl OutputOptions {
    pub fn format(&self, context: &Context) -> Format {
        self.output.unwrap_or(if context.surroundings.is_terminal { Format::Table } else { Format::Ndjson })
    }

    pub fn is_json(&self) -> bool {
        self.output == Some(Format::Json)
    }

    pub const fn zone(&self) -> Zone {
        if self.utc { Zone::Utc } else { self.zone }
    }

    /// One object: as lines of its members in a table.
    pub fn print_one(&self, context: &Context, object: &Json, usual: &[&str]) -> Result<(), Failure> {
        match self.format(context) {
            Format::Json | Format::Ndjson => print(format_args!("{object}")),
            Format::Id => print(format_args!("{}", rows::text(&object.parse::<Value>()?["id"]))),
            Format::Table if self.columns.is_empty() => {
                let (values, texts): (Map<String, Value>, BTreeMap<String, Json>) = (object.parse()?, object.parse()?);
                let shown = values.iter().filter(|(_, value)| !value.is_null());
                let line = |(name, value): (&String, &Value)| {
                    // Payloads are shown as the text that they are, whatever their numbers.
                    let exact = texts.get(name).filter(|_| value.is_object() || value.is_array()).map(Json::to_string);
                    [name.clone(), exact.unwrap_or_else(|| rows::cell(name, value, self.zone()))]
                };
                print(format_args!("{}", crate::table(&shown.map(line).collect::<Vec<_>>())))
            }
            Format::Table | Format::Csv => self.print_many(context, std::slice::from_ref(object), usual),
        }
    }

    /// One timer that was changed: its row in a table.
    pub fn print_changed(&self, context: &Context, timer: &Json) -> Result<(), Failure> {
        match self.format(context) {
            Format::Json => print(format_args!("{timer}")),
            _ => self.print_many(context, std::slice::from_ref(timer), &COLUMNS[..6]),
        }
    }

    /// Several objects.
    pub fn print_many(&self, context: &Context, objects: &[Json], usual: &[&str]) -> Result<(), Failure> {
        let columns: Vec<&str> =
            if self.columns.is_empty() { usual.to_vec() } else { self.columns.iter().map(String::as_str).collect() };
        match self.format(context) {
            Format::Json => {
                let all: Vec<_> = objects.iter().map(Json::as_str).collect();
                print(format_args!("[{}]", all.join(",")))
            }
            Format::Ndjson => objects.iter().try_for_each(|object| print(format_args!("{object}"))),
            Format::Id => {
                objects.iter().try_for_each(|object| print(format_args!("{}", rows::text(&object.parse::<Value>()?["id"]))))
            }
            Format::Csv => {
                print(format_args!("{}", rows::csv_line(columns.iter().copied())))?;
                for object in objects {
                    let value: Value = object.parse()?;
                    let cells = columns.iter().map(|name| rows::text(rows::member(&value, name)));
                    print(format_args!("{}", rows::csv_line(cells)))?;
                }
                Ok(())
            }
            Format::Table => {
                let head = columns.iter().map(|name| rows::heading(name)).collect();
                let mut lines: Vec<Vec<String>> = vec![head];
                for object in objects {
                    let value: Value = object.parse()?;
                    lines.push(columns.iter().map(|name| rows::cell(name, rows::member(&value, name), self.zone())).collect());
                }
                print(format_args!("{}", crate::table(&lines)))
            }
        }
    }
}

/// Prints what was asked for. A reader that is gone ends the command without a word, as with other programs.
pub fn print(text: fmt::Arguments<'_>) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{text}").map_err(|_| Failure::new(1, ""))
}

/// Tells people something beside it.
pub fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
