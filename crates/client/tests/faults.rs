//! The client against a server that drops, delays and refuses.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::time::Duration;

use client::{Client, Error, NewTimer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};

/// What the server does with a connection, one after the other.
#[derive(Debug, Clone, Copy)]
enum Act {
    Drop,
    Hang,
    /// Half of an answer.
    Cut,
    Answer(u16, &'static str, &'static str),
}

const CREATED: &str = r#"{"code":0,"message":"timer created successfully","data":{"id":"01890a5d-ac96-774b-bcce-b302099a8057","namespace":"default","key":null,"group":null,"status":"pending","callback_type":"http","execute_at":"2030-01-31T12:00:00Z","time_left":9,"executed_at":null,"created_at":"2030-01-31T11:00:00Z","updated_at":"2030-01-31T11:00:00Z","revision":1}}"#;
const AWAY: &str = r#"{"code":1,"message":"the store is not available and nothing was changed: try again later","data":null}"#;
const TOO_MANY: &str = r#"{"code":5,"message":"too many requests","data":null}"#;

/// A client of a server that does this, and what the server was asked.
async fn facing(acts: &'static [Act]) -> (Client, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut open = Vec::new();
        for act in acts {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 64 * 1024];
            let length = socket.read(&mut bytes).await.unwrap();
            drop(asked.send(String::from_utf8_lossy(&bytes[..length]).into_owned()));
            match act {
                Act::Drop => {}
                Act::Hang => open.push(socket),
                Act::Cut => socket.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 900\r\n\r\n{\"code\":").await.unwrap(),
                Act::Answer(status, head, body) => {
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{head}\r\n{body}");
                    socket.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        }
        std::future::pending::<()>().await;
    });
    let client = Client::builder(url, "k").timeout(Duration::from_secs(4)).build().unwrap();
    (client, requests)
}

fn asked(requests: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| requests.try_recv().ok()).collect()
}

fn body(request: &str) -> &str {
    request.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[tokio::test]
async fn a_create_is_repeated_with_the_same_id_whatever_became_of_the_first_tries() {
    let (client, mut requests) = facing(&[Act::Drop, Act::Answer(503, "", AWAY), Act::Cut, Act::Answer(200, "", CREATED)]).await;
    let timer = client.timers().create(&NewTimer::http("http://a/x").delay("1h")).await.unwrap();
    assert_eq!(timer.revision, 1);
    let requests = asked(&mut requests);
    assert_eq!(requests.len(), 4);
    assert!(body(&requests[0]).starts_with(r#"{"id":""#));
    assert!(requests.iter().all(|request| body(request) == body(&requests[0])), "{requests:?}");
}

#[tokio::test]
async fn one_that_hangs_leaves_time_for_another_try() {
    let (client, mut requests) = facing(&[Act::Hang, Act::Answer(200, "", CREATED)]).await;
    client.timers().create(&NewTimer::http("http://a/x").delay("1h").key("k")).await.unwrap();
    assert_eq!(asked(&mut requests).len(), 2);
}

#[tokio::test]
async fn fire_is_never_repeated() {
    for act in [Act::Drop, Act::Cut, Act::Answer(503, "", AWAY), Act::Answer(429, "retry-after: 0\r\n", TOO_MANY)] {
        let acts: &'static [Act] = vec![act, Act::Answer(200, "", CREATED)].leak();
        let (client, mut requests) = facing(acts).await;
        client.timers().fire("01890a5d-ac96-774b-bcce-b302099a8057").await.unwrap_err();
        assert_eq!(asked(&mut requests).len(), 1, "{act:?}");
    }
}

#[tokio::test]
async fn the_service_says_how_long_to_wait_and_the_deadline_holds() {
    let (client, mut requests) = facing(&[Act::Answer(429, "retry-after: 1\r\n", TOO_MANY), Act::Answer(200, "", CREATED)]).await;
    let begun = tokio::time::Instant::now();
    client.timers().cancel("01890a5d-ac96-774b-bcce-b302099a8057").await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(asked(&mut requests).len(), 2);
    let (client, _) = facing(&[Act::Answer(429, "retry-after: 60\r\nx-request-id: r1\r\n", TOO_MANY)]).await;
    let error = client.timers().cancel("01890a5d-ac96-774b-bcce-b302099a8057").await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert!(matches!(error, Error::TooMany(_)), "{error:?}");
    assert_eq!((refusal.retry_after, refusal.request_id.as_deref()), (Some(Duration::from_secs(60)), Some("r1")));
}

#[tokio::test]
async fn what_is_no_service_is_said_so() {
    let (client, _) = facing(&[Act::Answer(200, "", "<html>")]).await;
    assert!(matches!(client.health().await, Err(Error::Unexpected(_))));
    let absent = Client::builder("http://127.0.0.1:9", "k").retries(0).build().unwrap();
    assert!(matches!(absent.health().await, Err(Error::Unreachable { .. })));
}
