//! What the head of a request must look like: a pure reading of bytes, stricter than the parser that comes after it, so that no
//! proxy in front of us can see another request in them than we do. This is the defence against request smuggling: a head whose framing
//! two readers could understand differently is refused, and its connection closed.

use http::Uri;

use crate::{Limits, error::ApiError};

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    Known(u64),
    Chunked,
}

/// What is known of the bytes so far.
#[derive(Debug)]
pub(super) enum Scan {
    /// The head is not whole yet.
    Incomplete,
    /// The head ends before this byte.
    Whole { bytes: usize, body: BodyLength },
}

/// Looks at the bytes from `seen` on, where earlier calls left off, for the end of the head.
pub(super) fn scan(bytes: &[u8], seen: &mut usize, limits: &Limits) -> Result<Scan, ApiError> {
    while let Some(found) = memchr::memchr(b'\n', &bytes[*seen..]) {
        let line_feed = *seen + found;
        *seen = line_feed + 1;
        if line_feed == 0 || bytes[line_feed - 1] != b'\r' {
            return Err(malformed("lines must end with CR LF"));
        }
        if bytes[..line_feed + 1].ends_with(b"\r\n\r\n") {
            let head = &bytes[..line_feed + 1];
            return check(head, limits).map(|body| Scan::Whole { bytes: head.len(), body });
        }
    }
    *seen = bytes.len();
    if bytes.len() < limits.head_bytes_max {
        return Ok(Scan::Incomplete);
    }
    Err(if bytes.contains(&b'\n') { ApiError::HeadersTooLarge } else { ApiError::UriTooLong })
}

/// Checks a whole head, and says how its body is framed.
fn check(head: &[u8], limits: &Limits) -> Result<BodyLength, ApiError> {
    let mut lines = Lines(&head[..head.len() - 2]);
    let is_1_1 = check_request_line(lines.next().unwrap_or_default(), limits)?;
    if head.len() > limits.head_bytes_max {
        return Err(ApiError::HeadersTooLarge);
    }
    let mut framing = Framing::default();
    for (at, line) in lines.enumerate() {
        if at >= limits.headers_max {
            return Err(ApiError::HeadersTooLarge);
        }
        let (name, value) = check_header(line)?;
        framing.note(name, value)?;
    }
    framing.body_length(is_1_1)
}

/// Lines that all end with CR LF.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (line, rest) = self.0.split_at(memchr::memchr(b'\n', self.0)? + 1);
        self.0 = rest;
        line.strip_suffix(b"\r\n")
    }
}

/// Checks `METHOD target HTTP/1.x`; whether it is 1.1.
fn check_request_line(line: &[u8], limits: &Limits) -> Result<bool, ApiError> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(malformed("the request line must be METHOD target HTTP/1.1"));
    };
    if method.is_empty() || !method.iter().all(|byte| TOKEN[usize::from(*byte)]) {
        return Err(malformed("the method is not valid"));
    }
    if target.len() > limits.uri_bytes_max {
        return Err(ApiError::UriTooLong);
    }
    if !is_plain_path(target) && (!target.iter().all(|byte| matches!(byte, 0x21..=0x7e)) || Uri::try_from(target).is_err()) {
        return Err(malformed("the target is not a valid URI"));
    }
    match version {
        b"HTTP/1.1" => Ok(true),
        b"HTTP/1.0" => Ok(false),
        _ => Err(malformed("only HTTP/1.1 is spoken here")),
    }
}

/// Whether the target is a path in which nothing has a meaning of its own: nearly all are, and need no closer look.
fn is_plain_path(target: &[u8]) -> bool {
    target.starts_with(b"/") && target.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_'))
}

fn check_header(line: &[u8]) -> Result<(&[u8], &[u8]), ApiError> {
    let colon = memchr::memchr(b':', line).ok_or_else(|| malformed("a header has no colon"))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    // This also refuses a line that begins with a blank: the obsolete way to continue the header before it.
    if name.is_empty() || !name.iter().all(|byte| TOKEN[usize::from(*byte)]) {
        return Err(malformed("a header has a name that is not valid"));
    }
    if value.iter().any(|byte| matches!(byte, 0x00..=0x08 | 0x0a..=0x1f | 0x7f)) {
        return Err(malformed("a header has a value that is not valid"));
    }
    Ok((name, value.trim_ascii()))
}

/// What the headers say about the length of the body.
#[derive(Default)]
struct Framing {
    hosts: u32,
    length: Option<u64>,
    chunked: bool,
}

impl Framing {
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), ApiError> {
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let length = digits.and_then(|text| text.parse().ok()).ok_or_else(|| malformed("content-length must be a number"))?;
            if self.length.replace(length).is_some() {
                return Err(malformed("content-length must not be given twice"));
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(malformed("transfer-encoding must be chunked"));
            }
            self.chunked = true;
        }
        Ok(())
    }

    fn body_length(&self, is_1_1: bool) -> Result<BodyLength, ApiError> {
        if is_1_1 && self.hosts != 1 || self.hosts > 1 {
            return Err(malformed("there must be one host header"));
        }
        match (self.length, self.chunked) {
            (Some(_), true) => Err(malformed("content-length must not be given together with transfer-encoding")),
            (None, true) if !is_1_1 => Err(malformed("transfer-encoding needs HTTP/1.1")),
            (None, true) => Ok(BodyLength::Chunked),
            (length, false) => Ok(BodyLength::Known(length.unwrap_or(0))),
        }
    }
}

/// Which bytes a name may have.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = is_token(byte);
        byte += 1;
    }
    table
};

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

fn malformed(what: &str) -> ApiError {
    ApiError::Malformed(format!("the request is malformed: {what}"))
}

#[cfg(any(test, fuzzing))]
pub mod checks;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
