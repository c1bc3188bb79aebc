//! Answers of a service as people read them in a terminal.

use serde_json::Value;

/// The text of a string, and nothing for anything else.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Columns as wide as what is in them.
pub fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:<width$}", width = width(column)));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [["a", "bé", "c"], ["long", "", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "a     bé  c\nlong      x");
    }
}
