use comfy_table::{Cell, Table, presets::NOTHING};

/// Columns as wide as what is in them, with two blanks between.
pub fn table(rows: &[impl AsRef<[String]>]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    for row in rows {
        table.add_row(row.as_ref().iter().map(Cell::new));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
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
