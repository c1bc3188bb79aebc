//! The generated parts of the reference in docs/book: every operation and object of the API, and every refusal. The test below
//! compares them with the files of the repository, or writes them.

mod errors;
mod operations;

use std::path::Path;

const GENERATED: &str =
    "<!-- Generated from crates/api; to update what follows: `UPDATE=1 cargo test -p api --lib generated_pages`. -->\n";

/// A cell of a table: one line, in which a vertical bar is text.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[test]
fn generated_pages_are_current() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/reference");
    for (name, generated) in [("api.md", operations::page()), ("errors.md", errors::tables())] {
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
