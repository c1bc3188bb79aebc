//! A reminder in two days, which moves when the customer comes back and which is gone when the order is placed.
//!
//! ```sh
//! TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… cargo run -p client --example reminder "$RECEIVER/remind"
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{error::Error, time::Duration};

use client::{Client, Filter, Json, NewTimer, PageQuery, RetryPolicy, Timer, TimerRef};
use futures_util::TryStreamExt;
use serde_json::json;

const TWO_DAYS: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// Each call postpones the same timer: it fires two days after the last.
async fn remind(client: &Client, cart: u32, url: &str) -> Result<Timer, client::Error> {
    let retry = RetryPolicy { max_retries: Some(5), initial_interval: Some("1m".to_owned()), ..RetryPolicy::default() };
    let timer = NewTimer::http(url)
        .after(TWO_DAYS)
        .namespace("shop")
        .key(format!("cart-{cart}"))
        .on_conflict("postpone")
        .payload(Json::of(&json!({"cart": cart}))?)
        .retry(retry);
    client.timers().create(&timer).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("the URL of a receiver is missing")?;
    let client = Client::from_env()?;
    for visit in [1, 2] {
        let timer = remind(&client, 4711, &url).await?;
        println!("visit {visit}: reminder {} at {}", timer.id, timer.execute_at);
    }

    // A second cart is ordered: its reminder is not needed any more.
    remind(&client, 4712, &url).await?;
    client.timers().cancel(TimerRef::key("shop", "cart-4712")).await?;

    let query = PageQuery { order: Some("asc".to_owned()), ..Filter::new().namespace("shop").into() };
    let mut timers = Box::pin(client.timers().list(query));
    while let Some(timer) = timers.try_next().await? {
        println!("{} {}", timer.key.unwrap_or_default(), timer.status);
    }
    Ok(())
}
