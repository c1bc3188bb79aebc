//! Answers that do not end by themselves.

use super::*;

const FOLLOW: &str = "GET /events HTTP/1.1\r\nhost: a\r\nx-api-key: ";

async fn read_to(socket: &mut TcpStream, wanted: &str) -> String {
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains(wanted) {
        let count = time::timeout(LONG, socket.read_buf(&mut text)).await.expect("more in time").unwrap();
        assert!(count > 0, "it was closed: {}", String::from_utf8_lossy(&text));
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_quiet_stream_outlives_every_limit_and_ends_with_the_listener() {
    let limits =
        Limits { idle_time_max: SHORT, head_time_max: SHORT, body_time_max: SHORT, write_stall_max: SHORT, ..Limits::default() };
    let served = Served::with(limits).await;
    let mut socket = served.connect().await;
    socket.write_all(format!("{FOLLOW}{KEY}\r\n\r\n").as_bytes()).await.unwrap();
    let head = read_to(&mut socket, ": position").await;
    assert!(head.contains("text/event-stream") && head.contains("chunked"), "{head}");
    time::sleep(5 * SHORT).await;
    served.rig.created(r#"{"delay":"1h","callback":{"type":"http","url":"http://a.example/"}}"#).await;
    read_to(&mut socket, "event: created").await;

    served.shutdown.cancel();
    assert!(rest(&mut socket).await.ends_with("0\r\n\r\n"), "the answer ends as it should");
    time::timeout(LONG, served.serving).await.expect("nothing holds the listener").unwrap();
}
