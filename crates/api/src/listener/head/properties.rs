//! Properties of the reading of heads, over random bytes: any, and such as heads are made of.

use proptest::{collection::vec, prelude::*, sample::select};

use super::checks::check;

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
        check(&bytes, piece);
    }

    #[test]
    fn what_is_nearly_a_head_is_read_alike_however_it_arrives(bytes in nearly_a_head(), piece in 1..50_usize) {
        check(&bytes, piece);
    }
}
