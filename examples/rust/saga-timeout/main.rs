//! The timeout of a saga: an order must be paid within 30 minutes, otherwise it is released.
//!
//! ```sh
//! TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… cargo run -p client --example saga-timeout "$RECEIVER/release"
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{error::Error, time::Duration};

use client::{Client, Json, NewTimer, RetryPolicy, TimerRef};
use serde_json::json;

/// One order. Its timeout is known by the number of the order, so that any process can end it.
struct Saga<'a> {
    client: &'a Client,
    order: &'a str,
    release: &'a str,
}

impl Saga<'_> {
    fn key(&self) -> String {
        format!("{}/timeout", self.order)
    }

    fn timeout(&self) -> TimerRef {
        TimerRef::key("orders", self.key())
    }

    /// May be repeated: the same key and content are the same timer.
    async fn begin(&self) -> Result<(), client::Error> {
        let retry = RetryPolicy { max_retries: Some(20), max_duration: Some("1d".to_owned()), ..RetryPolicy::default() };
        let timer = NewTimer::http(self.release)
            .after(Duration::from_secs(30 * 60))
            .namespace("orders")
            .key(self.key())
            .group(self.order)
            .payload(Json::of(&json!({"order": self.order}))?)
            .retry(retry);
        self.client.timers().create(&timer).await.map(drop)
    }

    /// Ends the timeout first: a cancel that is acknowledged always wins over the firing.
    async fn pay(&self) -> Result<(), client::Error> {
        match self.client.timers().cancel(self.timeout()).await {
            Ok(_) => println!("{} is paid", self.order),
            Err(client::Error::Invalid(_)) => println!("{} comes too late: it is being released", self.order),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let release = std::env::args().nth(1).ok_or("the URL of a receiver is missing")?;
    let client = &Client::from_env()?;
    let paid = Saga { client, order: "order-42", release: &release };
    let late = Saga { client, order: "order-43", release: &release };
    tokio::try_join!(paid.begin(), late.begin())?;
    paid.pay().await?;
    // The second order is never paid. Its time is over at once here, so that there is something to see.
    client.timers().fire(late.timeout()).await?;
    Ok(())
}
