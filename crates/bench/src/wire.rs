//! The part of HTTP/1.1 that two programs need which both send the length of their messages.

const LENGTH: &[u8] = b"content-length:";
const CHUNKED: &[u8] = b"transfer-encoding:";

/// Where one message in a buffer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first line and the headers, with the empty line after them.
    pub head_bytes: usize,
    pub body_bytes: usize,
}

impl Extent {
    pub const fn bytes(self) -> usize {
        self.head_bytes + self.body_bytes
    }
}

/// Why a message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("a message whose length is no number")]
    Length,
    #[error("a message in chunks, which this reader does not know")]
    Chunks,
}

/// The extent of the message at the start of `buffer`; `None` while its head is incomplete. Its body may be incomplete.
pub fn extent(buffer: &[u8]) -> Result<Option<Extent>, Unreadable> {
    let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(None) };
    let mut body_bytes = 0;
    for line in buffer[..end].split(|byte| *byte == b'\n') {
        if has_prefix(line, LENGTH) {
            body_bytes = number(line[LENGTH.len()..].trim_ascii()).ok_or(Unreadable::Length)?;
        } else if has_prefix(line, CHUNKED) {
            return Err(Unreadable::Chunks);
        }
    }
    let body_bytes = usize::try_from(body_bytes).map_err(|_| Unreadable::Length)?;
    Ok(Some(Extent { head_bytes: end + 4, body_bytes }))
}

/// The status of an answer.
pub fn status(head: &[u8]) -> Option<u16> {
    let code = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?.get(..3)?;
    number(code).and_then(|code| u16::try_from(code).ok())
}

/// The two numbers of `POST /<round>/<number>`.
pub fn hook(head: &[u8]) -> Option<(u64, u64)> {
    let path = head.strip_prefix(b"POST /")?;
    let path = &path[..path.iter().position(|byte| *byte == b' ')?];
    let slash = path.iter().position(|byte| *byte == b'/')?;
    Some((number(&path[..slash])?, number(&path[slash + 1..])?))
}

/// The number of occurrences of `needle` in `text` that do not overlap.
pub fn occurrences(text: &[u8], needle: &[u8]) -> usize {
    let Some(first) = needle.first() else { return 0 };
    let mut rest = text;
    let mut count = 0;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        let found = rest[at..].starts_with(needle);
        count += usize::from(found);
        rest = &rest[at + if found { needle.len() } else { 1 }..];
    }
    count
}

fn has_prefix(line: &[u8], prefix: &[u8]) -> bool {
    line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn number(digits: &[u8]) -> Option<u64> {
    // Without this check, "+5" would be a number.
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reaches_as_far_as_its_length_says() {
        let table: [(&str, Result<Option<Extent>, Unreadable>); 8] = [
            ("", Ok(None)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n", Ok(None)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", Ok(Some(Extent { head_bytes: 38, body_bytes: 5 }))),
            ("POST / HTTP/1.1\r\nCONTENT-LENGTH:12\r\nHost: a\r\n\r\n", Ok(Some(Extent { head_bytes: 47, body_bytes: 12 }))),
            ("HTTP/1.1 204 No Content\r\n\r\n", Ok(Some(Extent { head_bytes: 27, body_bytes: 0 }))),
            ("HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\n", Err(Unreadable::Length)),
            ("HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n", Err(Unreadable::Length)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Err(Unreadable::Chunks)),
        ];
        for (text, expected) in table {
            assert_eq!(extent(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn the_second_message_of_a_buffer_starts_where_the_first_one_ends() {
        let both = b"POST /1/2 HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}POST /1/3 HTTP/1.1\r\n\r\n";
        let first = extent(both).unwrap().unwrap();
        assert_eq!(hook(&both[first.bytes()..]), Some((1, 3)));
    }

    #[test]
    fn a_status_is_three_digits_after_the_version() {
        assert_eq!(status(b"HTTP/1.1 201 Created\r\n"), Some(201));
        assert_eq!(status(b"HTTP/1.1 2x1 Created\r\n"), None);
        assert_eq!(status(b"SSH-2.0"), None);
    }

    #[test]
    fn the_path_of_a_call_tells_its_round_and_its_number() {
        assert_eq!(hook(b"POST /1763200000/19999 HTTP/1.1\r\n"), Some((1_763_200_000, 19_999)));
        for other in ["GET /1/2 HTTP/1.1", "POST /1 HTTP/1.1", "POST /a/2 HTTP/1.1", "POST /1/-2 HTTP/1.1", "POST /1/2"] {
            assert_eq!(hook(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn what_is_counted_does_not_overlap() {
        assert_eq!(occurrences(br#"[{"status":201,"x":"status"},{"status":201},{"status":400}]"#, br#""status":201"#), 2);
        assert_eq!(occurrences(b"aaaa", b"aa"), 2);
        assert_eq!(occurrences(b"", b"aa"), 0);
    }
}
