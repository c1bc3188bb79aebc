//! The generated parts of the reference in docs/book that this crate knows: every command, and every metric. The test below compares
//! them with the files of the repository, or writes them; [`crate::settings`] does the same for settings.

mod commands;
mod metrics;

use std::path::Path;

const GENERATED: &str =
    "<!-- Generated from crates/server; to update what follows: `UPDATE=1 cargo test -p server --bin timer generated`. -->\n";

/// A cell of a table: one line, in which a vertical bar and an angle bracket are text.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn generated_pages_are_current() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/reference");
    for (name, generated) in [("commands.md", commands::sections()), ("metrics.md", metrics::table())] {
        let file = reference.join(name);
        let found = std::fs::read_to_string(&file).expect("a page of the book");
        let written = found.split(GENERATED).next().unwrap_or_default().trim_end();
        let wanted = format!("{written}\n\n{GENERATED}\n{generated}");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &wanted).expect("a file that can be written");
        } else {
            assert!(found == wanted, "{name} is not what the code says. {GENERATED}");
        }
    }
}
