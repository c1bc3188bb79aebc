//! Answers that are given without any route, and the closing that lets them arrive.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time,
};
use uuid::Uuid;

use crate::error::ApiError;

/// How long a refusal may take, and how long its client may go on sending.
const REFUSAL_TIME_MAX: Duration = Duration::from_secs(2);

/// Tells the client why, and closes.
pub(super) async fn send(mut socket: TcpStream, error: &ApiError) {
    ::metrics::counter!("timer_http_heads_refused_total", "status" => error.status().as_u16().to_string()).increment(1);
    let status = error.status();
    let body = serde_json::to_string(&error.envelope()).unwrap_or_default();
    let text = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncache-control: no-store\r\nx-request-id: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        Uuid::new_v4(),
        body.len(),
    );
    if let Ok(Ok(())) = time::timeout(REFUSAL_TIME_MAX, socket.write_all(text.as_bytes())).await {
        linger(socket).await;
    }
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
