//! The columns that a statement answers with, found in its text by their names.

/// The list of columns of a query: what stands between its first `SELECT` and the `FROM` that belongs to it.
pub const fn columns(query: &str) -> &str {
    const SELECT: usize = "SELECT ".len();
    let bytes = query.as_bytes();
    let mut at = SELECT;
    assert!(bytes.len() > SELECT && is_at(bytes, 0, b"SELECT "), "a query begins with SELECT");
    while !is_at(bytes, at, b" FROM ") {
        assert!(at < bytes.len(), "a query has a FROM");
        at = after_token(bytes, at);
    }
    let (query, _) = query.split_at(at);
    query.split_at(SELECT).1
}

/// The place of the column with that name, or with that alias, in the answer to a query. Used through [`column!`](crate::column),
/// which finds it while the program is compiled: a name that is not there does not compile.
pub const fn column(query: &str, name: &str) -> usize {
    let bytes = columns(query).as_bytes();
    let (mut at, mut place) = (0, 0);
    loop {
        let is_end = at == bytes.len();
        if is_end || bytes[at] == b',' {
            if ends_with_word(bytes, at, name.as_bytes()) {
                return place;
            }
            assert!(!is_end, "the query has no column of that name");
            place += 1;
        }
        at = after_token(bytes, at);
    }
}

/// Whether the columns of one query are the first ones of another, so that rows of both can be read alike.
pub const fn are_first_columns_of(first: &str, of: &str) -> bool {
    let (first, of) = (columns(first).as_bytes(), columns(of).as_bytes());
    is_at(of, 0, first) && (first.len() == of.len() || of[first.len()] == b',')
}

/// The position behind a byte, or behind all that is in the brackets or quotes that it opens.
const fn after_token(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    match bytes[start] {
        quote @ (b'\'' | b'"') => {
            while bytes[at] != quote {
                at += 1;
            }
            at + 1
        }
        b'(' => {
            while bytes[at] != b')' {
                at = after_token(bytes, at);
            }
            at + 1
        }
        _ => at,
    }
}

const fn is_at(bytes: &[u8], start: usize, word: &[u8]) -> bool {
    let mut place = 0;
    while place < word.len() {
        if start + place >= bytes.len() || bytes[start + place] != word[place] {
            return false;
        }
        place += 1;
    }
    true
}

/// Whether what is before `end` ends with the whole of a word.
const fn ends_with_word(bytes: &[u8], end: usize, word: &[u8]) -> bool {
    if end < word.len() || !is_at(bytes, end - word.len(), word) {
        return false;
    }
    let start = end - word.len();
    start == 0 || !(bytes[start - 1].is_ascii_alphanumeric() || bytes[start - 1] == b'_')
}

/// The place of a column in the answer to a query, by its name: `row.get(column!(KEYS, "rights"))`. Found while the program is
/// compiled, so that reading by name costs no more than reading by number.
#[macro_export]
macro_rules! column {
    ($query:expr, $name:literal) => {
        const { $crate::columns::column($query, $name) }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &str = "SELECT d.id, d.key, coalesce(a, (SELECT b FROM c), ')') AS at, u.id IS NOT NULL AS waits, 'x, y' AS z, d.minute \
                         FROM definition d WHERE d.id = ?1";

    #[test]
    fn a_column_is_found_by_its_name_or_its_alias() {
        for (place, name) in ["id", "key", "at", "waits", "z", "minute"].into_iter().enumerate() {
            assert_eq!(column(QUERY, name), place, "{name}");
        }
        assert_eq!(column!(QUERY, "waits"), 3);
        assert_eq!(column("SELECT epoch FROM shard", "epoch"), 0);
    }

    #[test]
    fn a_part_of_a_name_is_not_the_name() {
        for name in ["ey", "nute", "NULL", "b", "y"] {
            assert!(std::panic::catch_unwind(|| column(QUERY, name)).is_err(), "{name}");
        }
    }

    #[test]
    fn the_list_of_columns_ends_with_the_from_that_belongs_to_it() {
        assert_eq!(columns("SELECT (SELECT a FROM b) AS c, 'e FROM f' FROM d"), "(SELECT a FROM b) AS c, 'e FROM f'");
    }

    #[test]
    fn columns_are_the_first_of_others_only_as_a_whole() {
        for (first, of, are) in [
            ("SELECT a, b FROM t", "SELECT a, b, c FROM t", true),
            ("SELECT a, b FROM t", "SELECT a, b FROM u", true),
            ("SELECT a, b FROM t", "SELECT a, bc FROM t", false),
            ("SELECT a, b FROM t", "SELECT a FROM t", false),
        ] {
            assert_eq!(are_first_columns_of(first, of), are, "{first}, {of}");
        }
    }
}
