use store_partitioned::{Change, Positions, Write};

/// How much one batch carries. The bytes are far below what a mutation of Cassandra may have with its settings as they are by default
/// (16 MiB); a row that is larger travels alone.
pub const ROWS_MAX: usize = 500;
pub const BYTES_MAX: usize = 2 * 1024 * 1024;

/// How large a write is, about.
pub fn write_bytes(write: &Write) -> usize {
    let positions = |positions: &Positions| positions.iter().map(|(_, position)| position.len() + write.key.len()).sum::<usize>();
    let put = match &write.change {
        Change::Put { head, body, log, positions: after, .. } => {
            head.len() + body.as_ref().map_or(0, Vec::len) + log.as_ref().map_or(0, Vec::len) + positions(after)
        }
        Change::Delete => 0,
    };
    write.key.len() + put + positions(&write.before)
}

/// Divides writes into what one batch carries.
pub fn portions(writes: Vec<Write>) -> Vec<Vec<Write>> {
    let (mut all, mut rows, mut bytes) = (vec![Vec::new()], 0, 0);
    for write in writes {
        let size = write_bytes(&write);
        if rows > 0 && (rows == ROWS_MAX || bytes + size > BYTES_MAX) {
            all.push(Vec::new());
            (rows, bytes) = (0, 0);
        }
        (rows, bytes) = (rows + 1, bytes + size);
        if let Some(last) = all.last_mut() {
            last.push(write);
        }
    }
    all
}
