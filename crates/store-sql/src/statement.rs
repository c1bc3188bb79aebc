//! Statements in files of their own, readable and with comments, that cost nothing of it at run time.

/// The text of a file with a statement, without its comments and with one blank for each run of blanks. Drivers look a prepared
/// statement up by its text on every call, so every byte of a comment would count.
#[derive(Debug)]
pub struct Statement<const FILE_BYTES: usize> {
    bytes: [u8; FILE_BYTES],
    length: usize,
}

impl<const FILE_BYTES: usize> Statement<FILE_BYTES> {
    /// Made while the program is compiled, see [`sql!`](crate::sql).
    pub const fn compact(file: &str) -> Self {
        let file = file.as_bytes();
        let mut compact = Self { bytes: [0; FILE_BYTES], length: 0 };
        let (mut at, mut blank) = (0, false);
        while at < file.len() {
            let is_comment = file[at] == b'-' && at + 1 < file.len() && file[at + 1] == b'-';
            if is_comment {
                at = end_of_line(file, at);
            } else if file[at].is_ascii_whitespace() {
                blank = true;
                at += 1;
            } else {
                if blank && compact.length > 0 {
                    compact.push(b' ');
                }
                blank = false;
                let end = end_of_word(file, at);
                while at < end {
                    compact.push(file[at]);
                    at += 1;
                }
            }
        }
        compact
    }

    const fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    pub const fn as_str(&self) -> &str {
        match str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => panic!("a text stays a text without its comments"),
        }
    }
}

const fn end_of_line(file: &[u8], mut at: usize) -> usize {
    while at < file.len() && file[at] != b'\n' {
        at += 1;
    }
    at
}

/// The end of a quoted text, in which blanks and hyphens count; otherwise the next byte.
const fn end_of_word(file: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    if file[start] == b'\'' || file[start] == b'"' {
        while at < file.len() && file[at] != file[start] {
            at += 1;
        }
        if at < file.len() {
            at += 1;
        }
    }
    at
}

/// The statement in a file, whose path is relative to the file that asks: `sql!("sql/claim.sql")`.
#[macro_export]
macro_rules! sql {
    ($path:literal) => {{
        const FILE: &str = include_str!($path);
        const STATEMENT: &$crate::Statement<{ FILE.len() }> = &$crate::Statement::compact(FILE);
        STATEMENT.as_str()
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_keeps_what_the_database_reads() {
        for (file, statement) in [
            ("", ""),
            ("-- nothing", ""),
            ("SELECT 1\n", "SELECT 1"),
            ("-- Why.\n-- $1 id\nSELECT a,\n    b -- both\nFROM t\n", "SELECT a, b FROM t"),
            ("SELECT '--  no\n comment', \"a  b\"  , 'é'", "SELECT '--  no\n comment', \"a  b\" , 'é'"),
            ("SELECT 'it''s  so'  -- 'open", "SELECT 'it''s  so'"),
            ("SELECT 2 - 1", "SELECT 2 - 1"),
            ("SELECT 'open  ", "SELECT 'open  "),
        ] {
            assert_eq!(Statement::<100>::compact(file).as_str(), statement, "{file}");
        }
    }
}
