#![no_main]

// A head that the strict reader lets through is the same head for the parser behind it: it ends at the same byte, and both know the same
// length of its body. Where they could differ, a request could be smuggled.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((end, length)) = api::check_head(bytes, 1 + bytes.len() % 50) else { return };
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    assert_eq!(request.parse(bytes), Ok(httparse::Status::Complete(end)));
    let named = |name: &str| request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count();
    match length {
        Some(length) => {
            assert_eq!(named("transfer-encoding"), 0);
            let given = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
            let given = given.map_or("0", |header| std::str::from_utf8(header.value).expect("digits"));
            assert_eq!(given.trim().parse(), Ok(length));
        }
        None => assert_eq!((named("transfer-encoding"), named("content-length")), (1, 0)),
    }
});
