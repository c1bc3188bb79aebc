//! What must hold for any bytes: tried over random ones by the tests beside this, and for hours by `fuzz/`.

use super::*;

/// Small, so that short heads reach them.
fn limits() -> Limits {
    Limits { head_bytes_max: 200, headers_max: 5, uri_bytes_max: 50, ..Limits::default() }
}

/// Reads the bytes as a whole and as they would arrive, so many at a time. Where the head ends and how long its body is, if it is whole
/// and right; a chunked body has no length.
pub fn check(bytes: &[u8], piece: usize) -> Option<(usize, Option<u64>)> {
    let read = whole(scan(bytes, &mut 0, &limits()));
    assert_eq!(whole(in_pieces(bytes, piece)), read, "read differently in pieces of {piece}");
    let (end, body) = read?;
    assert!(bytes[..end].ends_with(b"\r\n\r\n") && end <= limits().head_bytes_max);
    assert!(!bytes[..end - 2].windows(4).any(|four| four == b"\r\n\r\n"), "a second head within it");
    match body {
        BodyLength::Known(length) => Some((end, Some(length))),
        BodyLength::Chunked => Some((end, None)),
    }
}

fn whole(scanned: Result<Scan, ApiError>) -> Option<(usize, BodyLength)> {
    match scanned {
        Ok(Scan::Whole { bytes, body }) => Some((bytes, body)),
        Ok(Scan::Incomplete) | Err(_) => None,
    }
}

/// As a connection reads: so many bytes more each time, until it is known what they are.
fn in_pieces(bytes: &[u8], piece: usize) -> Result<Scan, ApiError> {
    let (mut seen, mut read) = (0, 0);
    loop {
        read = (read + piece).min(bytes.len());
        match scan(&bytes[..read], &mut seen, &limits()) {
            Ok(Scan::Incomplete) if read < bytes.len() => {}
            known => return known,
        }
    }
}
