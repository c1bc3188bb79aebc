//! A minimal HTTP client for the monitoring port.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The timeout: the kernel accepts connections for a paused server, which never answers.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The JSON under `path` of the server that monitors on `port`; `None` when it does not answer, or not with 200.
pub fn get(port: u16, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    // HTTP 1.0, so that the answer is not chunked and the connection ends with it.
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    body_of_success(&answer)
}

fn body_of_success(answer: &str) -> Option<Value> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if head.split(' ').nth(1) != Some("200") {
        return None;
    }
    serde_json::from_str(body).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_success_has_a_body() {
        let answer = |status: &str| format!("HTTP/1.0 {status}\r\nContent-Type: application/json\r\n\r\n{{\"status\":\"x\"}}");
        assert_eq!(body_of_success(&answer("200 OK")), Some(json!({"status": "x"})));
        assert_eq!(body_of_success(&answer("503 Service Unavailable")), None);
        assert_eq!(body_of_success("HTTP/1.0 200 OK\r\n"), None);
    }
}
