//! Answers that are given without any route, and the closing that lets them arrive.

use std::time::Duration;

use axum::{Router, response::Response};
use http::header;
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time,
};
use tower::ServiceExt;

use super::strict_reader::Fault;

/// How long a refusal may take, and how long its client may go on sending.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(2);

/// Tells the client why, and closes.
pub(super) async fn send(mut socket: TcpStream, router: Router, fault: Fault) {
    let Ok(response) = router.oneshot(fault.dialect.synthetic_request(fault.error)).await;
    ::metrics::counter!("timer_http_heads_refused_total", "status" => response.status().as_u16().to_string()).increment(1);
    let text = write(response).await;
    if let Ok(Ok(())) = time::timeout(REFUSAL_TIME_MAX, socket.write_all(&text)).await {
        linger(socket).await;
    }
}

/// The answer as it goes over the wire.
async fn write(response: Response) -> Vec<u8> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let reason = parts.status.canonical_reason().unwrap_or_default();
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()).into_bytes();
    for (name, value) in parts.headers.iter().filter(|(name, _)| *name != header::CONNECTION) {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    text.extend_from_slice(b"connection: close\r\n\r\n");
    text.extend_from_slice(&body);
    text
}

/// Closes so that the client gets to read the answer: a socket that is closed with bytes unread is reset, and the reset
/// overtakes the answer. What the client still sends is thrown away, for a while.
pub(super) async fn linger(mut socket: TcpStream) {
    if socket.shutdown().await.is_err() {
        return;
    }
    let mut rest = vec![0; 16 * 1024];
    let throw_away = async { while matches!(socket.read(&mut rest).await, Ok(1..)) {} };
    let _ = time::timeout(REFUSAL_TIME_MAX, throw_away).await;
}
