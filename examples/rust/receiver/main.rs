//! A receiver over axum: it verifies signatures, drops repetitions, and asks for a later attempt while it is closed.
//!
//! ```sh
//! SIGNING_SECRET=whsec_… cargo run -p client --example receiver 127.0.0.1:9000
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{
    collections::HashSet,
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Body, extract::State, routing::post};
use bytes::Bytes;
use client::webhook::{Answer, Call, Receiver, Secret, again, done, failed, retry_after};
use http::{Request, Response};
use http_body_util::Full;
use serde::Deserialize;

type Shared = State<Arc<Receiver>>;

/// For timers of the webhook protocol: any 2xx completes them.
fn remind(call: &Call, body: &str) -> Answer {
    if body.contains("closed") {
        return retry_after(Duration::from_secs(60));
    }
    println!("{} attempt {}, {:?} late: {body}", call.timer_id, call.attempt, call.lateness());
    Answer::status(204)
}

/// For timers of the timer protocol: the body has the payload, and the answer says when to call again.
fn poll(call: &Call, body: &str) -> Answer {
    #[derive(Deserialize)]
    struct Wanted {
        payload: Job,
    }
    #[derive(Deserialize)]
    struct Job {
        name: String,
        done: bool,
    }
    match serde_json::from_str(body) {
        Ok(Wanted { payload: Job { name, done: true } }) => println!("{name} is done"),
        Ok(_) => return again(call.sent_at + Duration::from_secs(60 * 60)),
        Err(_) => return failed(),
    }
    done(None)
}

async fn answer(receiver: &Receiver, request: Request<Body>, with: fn(&Call, &str) -> Answer) -> Response<Full<Bytes>> {
    match receiver.take(request).await {
        Ok((call, body)) => with(&call, &String::from_utf8_lossy(&body)).into(),
        Err(refused) => refused,
    }
}

async fn at_remind(State(receiver): Shared, request: Request<Body>) -> Response<Full<Bytes>> {
    answer(&receiver, request, remind).await
}

async fn at_poll(State(receiver): Shared, request: Request<Body>) -> Response<Full<Bytes>> {
    answer(&receiver, request, poll).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("an address is missing")?;
    let secrets = std::env::var("SIGNING_SECRET")?.split(',').map(Secret::parse).collect::<Result<Vec<_>, _>>()?;
    // One process remembers in memory. Several share a table, and record the call in the transaction that does the work.
    let seen = Mutex::new(HashSet::new());
    let receiver = Receiver::new(secrets).only_if(move |call| seen.lock().is_ok_and(|mut seen| seen.insert(call.id.clone())));
    let app = Router::new().route("/remind", post(at_remind)).route("/poll", post(at_poll)).with_state(Arc::new(receiver));
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
