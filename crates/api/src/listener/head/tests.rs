use super::*;

fn read(head: &str) -> Result<BodyLength, String> {
    let limits = Limits { head_bytes_max: 400, headers_max: 5, uri_bytes_max: 50, ..Limits::default() };
    match scan(head.as_bytes(), &mut 0, &limits) {
        Ok(Scan::Whole { bytes, body }) => {
            assert_eq!(bytes, head.len());
            Ok(body)
        }
        Ok(Scan::Incomplete) => Err("incomplete".to_owned()),
        Err(ApiError::Malformed(text)) => Err(text.strip_prefix("the request is malformed: ").unwrap().to_owned()),
        Err(error) => Err(format!("{error:?}")),
    }
}

#[test]
fn a_head_says_how_long_its_body_is() {
    for (head, body) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", BodyLength::Known(0)),
        ("GET /timers?a=b%20c HTTP/1.0\r\n\r\n", BodyLength::Known(0)),
        ("POST / HTTP/1.1\r\nhost:a\r\nContent-Length: 12 \r\n\r\n", BodyLength::Known(12)),
        ("POST / HTTP/1.1\r\nhost:a\r\nTransfer-Encoding: Chunked\r\n\r\n", BodyLength::Chunked),
        ("OPTIONS * HTTP/1.1\r\nhost:\r\nx: \u{e9}\t1\r\n\r\n", BodyLength::Known(0)),
    ] {
        assert_eq!(read(head), Ok(body), "{head:?}");
    }
}

#[test]
fn a_head_that_can_be_read_in_two_ways_is_refused() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(50));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(6));
    let fat = format!("GET / HTTP/1.1\r\nHost: a\r\nx: {}\r\n\r\n", "x".repeat(400));
    let no_end = format!("GET / HTTP/1.1\r\nHost: {}", "x".repeat(400));
    let no_line = "G".repeat(400);
    for (head, complaint) in [
        ("GET / HTTP/1.1\nHost: a\n\n", "lines must end with CR LF"),
        ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "lines must end with CR LF"),
        ("\n", "lines must end with CR LF"),
        ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "a header has no colon"),
        ("GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n", "a header has a name that is not valid"),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "a header has a name that is not valid"),
        ("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "a header has a name that is not valid"),
        ("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", "a header has a value that is not valid"),
        ("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "a header has a value that is not valid"),
        ("GET / HTTP/1.1\r\n\r\n", "there must be one host header"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "there must be one host header"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            "content-length must not be given twice",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "content-length must not be given twice",
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", "content-length must be a number"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", "content-length must be a number"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n", "content-length must be a number"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "content-length must be a number"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "content-length must not be given together with transfer-encoding",
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "transfer-encoding must be chunked"),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", "transfer-encoding must be chunked"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "transfer-encoding must be chunked",
        ),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer-encoding needs HTTP/1.1"),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "the request line must be METHOD target HTTP/1.1"),
        ("GET /\r\nHost: a\r\n\r\n", "the request line must be METHOD target HTTP/1.1"),
        ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "the method is not valid"),
        (" / HTTP/1.1\r\nHost: a\r\n\r\n", "the method is not valid"),
        ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", "the target is not a valid URI"),
        ("GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n", "the target is not a valid URI"),
        ("PRI * HTTP/2.0\r\n\r\n", "only HTTP/1.1 is spoken here"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "incomplete"),
        ("", "incomplete"),
        (&long, "UriTooLong"),
        (&many, "HeadersTooLarge"),
        (&fat, "HeadersTooLarge"),
        (&no_end, "HeadersTooLarge"),
        (&no_line, "UriTooLong"),
    ] {
        assert_eq!(read(head), Err(complaint.to_owned()), "{head:?}");
    }
}

#[test]
fn a_head_that_drips_in_is_read_the_same() {
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let mut seen = 0;
    for end in 0..head.len() - 5 {
        assert!(matches!(scan(&head[..end], &mut seen, &Limits::default()), Ok(Scan::Incomplete)), "{end}");
        assert_eq!(seen, end);
    }
    let whole = scan(head, &mut seen, &Limits::default());
    assert!(matches!(whole, Ok(Scan::Whole { bytes: 47, body: BodyLength::Known(5) })), "{whole:?}");
}
