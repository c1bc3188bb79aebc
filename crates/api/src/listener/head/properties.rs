//! Properties of the reading of heads, over random bytes: any, and such as heads are made of.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn limits() -> Limits {
    Limits { head_bytes_max: 200, headers_max: 5, uri_bytes_max: 50, ..Limits::default() }
}

/// Where the head ends and how long its body is, if it is whole and right.
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

fn nearly_a_head() -> impl Strategy<Value = Vec<u8>> {
    let part = select(vec![
        "GET ",
        "POST ",
        "/timers",
        "*",
        "%41",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        "Host: a\r\n",
        "Content-Length: 5\r\n",
        "Content-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "X-A: \u{e9}\t1\r\n",
        " folded\r\n",
        "\r\n",
        "\n",
        "\r",
        "\0",
        ":",
    ]);
    let right = select(vec!["", "GET / HTTP/1.1\r\nHost: a\r\n", "POST /timers HTTP/1.1\r\nhost:a\r\nContent-Length: 12\r\n"]);
    (right, vec(part, 0..8)).prop_map(|(right, parts)| format!("{right}{}", parts.concat()).into_bytes())
}

proptest! {
    #[test]
    fn any_bytes_are_a_head_or_not_however_they_arrive(bytes in vec(any::<u8>(), 0..300), piece in 1..50_usize) {
        prop_assert_eq!(whole(in_pieces(&bytes, piece)), whole(scan(&bytes, &mut 0, &limits())));
    }

    #[test]
    fn what_is_nearly_a_head_is_read_alike_however_it_arrives(bytes in nearly_a_head(), piece in 1..50_usize) {
        prop_assert_eq!(whole(in_pieces(&bytes, piece)), whole(scan(&bytes, &mut 0, &limits())));
    }

    #[test]
    fn a_head_that_is_read_ends_with_an_empty_line_and_is_no_longer_than_allowed(bytes in nearly_a_head()) {
        if let Some((end, _)) = whole(scan(&bytes, &mut 0, &limits())) {
            prop_assert!(bytes[..end].ends_with(b"\r\n\r\n") && end <= limits().head_bytes_max);
            prop_assert!(!bytes[..end - 2].windows(4).any(|four| four == b"\r\n\r\n"), "a second head within it");
        }
    }
}
