//! Which messages the client library can read. Pure.
//!
//! A message that it cannot read ends the connection, and everything behind it on the same connection is lost. Such messages
//! are easily written: servers check neither headers nor, closely, subjects. The rules here are those of the library, no
//! stricter: a message that it reads is a command like any other.

use async_nats::{HeaderName, StatusCode};

/// The rule that a message breaks, in words fit for a dead letter.
pub(super) fn rule_broken_by(subject: &str, headers: Option<&[u8]>) -> Option<&'static str> {
    if subject.contains(char::is_whitespace) {
        return Some("subject must not hold blanks of any kind");
    }
    headers.and_then(|headers| check(headers).err())
}

fn check(headers: &[u8]) -> Result<(), &'static str> {
    let text = std::str::from_utf8(headers).map_err(|_| "headers must be UTF-8")?;
    let mut lines = text.lines().peekable();
    let version = lines
        .next()
        .and_then(|line| line.strip_prefix("NATS/1.0"))
        .ok_or("headers must be a block that begins with NATS/1.0")?
        .trim();
    let status = version.split_once(' ').map_or(version, |(status, _)| status.trim());
    if !status.is_empty() && status.parse::<StatusCode>().is_err() {
        return Err("headers must be without a status, or with one from 100 to 999, after NATS/1.0");
    }
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let (name, value) = line.split_once(':').ok_or("headers must be lines of a name, a colon and a value")?;
        name.parse::<HeaderName>().map_err(|_| "headers must be named in printable ASCII without blanks")?;
        let mut value = value.trim_start().to_owned();
        while let Some(more) = lines.next_if(|line| line.starts_with(char::is_whitespace)) {
            value.push_str(more);
        }
        // The library does not refuse such a value: it panics.
        if value.trim_end().contains(['\r', '\n']) {
            return Err("headers must be without carriage returns inside values");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_reads_is_readable() {
        for headers in [
            &b"NATS/1.0\r\n\r\n"[..],
            b"NATS/1.0",
            b"NATS/1.0\r\nA: b\r\n\r\n",
            b"NATS/1.0\nA:b\n\n",
            b"NATS/1.0 503\r\n\r\n",
            b"NATS/1.0 404 No Messages\r\nA: b\r\n\r\n",
            b"NATS/1.0\r\nA:\r\n\r\n",
            b"NATS/1.0\r\n: nameless\r\n\r\n",
            b"NATS/1.0\r\nA: b: c\r\n\r\n",
            b"NATS/1.0\r\nA: b\r\n more\r\n\tand more\r\n\r\n",
            b"NATS/1.0\r\n\r\nA: b\r\n\r\n",
            b"NATS/1.0\r\nA: b\r\r\n\r\n",
            "NATS/1.0\r\nA: \u{e9}\u{0}\r\n\r\n".as_bytes(),
            b"NATS/1.0\r\n{\"}/@: b\r\n\r\n",
        ] {
            assert_eq!(rule_broken_by("timer.commands.a", Some(headers)), None, "{}", String::from_utf8_lossy(headers));
        }
        for subject in ["timer.commands.schedule", "timer.commands.\u{e9}\u{1}", "timer.commands.\u{fffd}"] {
            assert_eq!(rule_broken_by(subject, None), None, "{subject}");
        }
    }

    #[test]
    fn what_the_library_cannot_read_breaks_a_rule_that_is_named() {
        for (headers, rule) in [
            (&b"NATS/1.0\r\nA: \xff\r\n\r\n"[..], "UTF-8"),
            (b"\r\n", "begins with NATS/1.0"),
            (b"A: b\r\n\r\n", "begins with NATS/1.0"),
            (b"nats/1.0\r\nA: b\r\n\r\n", "begins with NATS/1.0"),
            (b" NATS/1.0\r\nA: b\r\n\r\n", "begins with NATS/1.0"),
            (b"NATS/1.0 OK\r\n\r\n", "status"),
            (b"NATS/1.0 099\r\n\r\n", "status"),
            (b"NATS/1.0\r\nA\r\n\r\n", "colon"),
            (b"NATS/1.0\r\n  \r\n\r\n", "colon"),
            (b"NATS/1.0\r\nA b: c\r\n\r\n", "named"),
            (b"NATS/1.0\r\nA : c\r\n\r\n", "named"),
            ("NATS/1.0\r\n\u{e9}: c\r\n\r\n".as_bytes(), "named"),
            (b"NATS/1.0\r\nA: b\rc\r\n\r\n", "carriage"),
            (b"NATS/1.0\r\nA: b\r\r\n c\r\n\r\n", "carriage"),
        ] {
            let broken = rule_broken_by("timer.commands.a", Some(headers));
            assert!(broken.is_some_and(|broken| broken.contains(rule)), "{rule}: {broken:?}");
            assert!(broken.is_some_and(|broken| broken.starts_with("headers must be")), "{broken:?}");
        }
        for subject in ["timer.commands.a\u{3000}b", "timer.commands.a\u{b}", "timer.commands.\u{85}"] {
            assert!(rule_broken_by(subject, None).is_some(), "{subject:?}");
        }
    }
}
