//! A reminder of thirty days, its retries and its end, tested in a second.
//!
//! ```sh
//! TIMER_BIN=… cargo test -p client --example test-without-waiting
//! ```

fn main() {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use client::{
        Error, Json, NewTimer, RetryPolicy, Status,
        dev::{Calls, InboxAnswer, TimerDev},
    };

    const THIRTY_DAYS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    #[tokio::test]
    async fn nothing_comes_before_its_time() -> Result<(), Error> {
        let dev = TimerDev::start().await?;
        let timer = NewTimer::http(dev.receiver("/remind")).after(THIRTY_DAYS).payload(Json::text(r#"{"user":42}"#)?);
        dev.client.timers().create(&timer).await?;
        dev.advance("29d23h").await?;
        assert_eq!(dev.calls(&Calls::at("/remind")).await?, []);

        dev.advance("1h").await?;
        let calls = dev.wait_for(&Calls::at("/remind"), 1).await?;
        assert_eq!((calls[0].body.as_str(), calls[0].signature_valid), (r#"{"user":42}"#, Some(true)));
        Ok(())
    }

    #[tokio::test]
    async fn a_receiver_that_is_down_for_an_hour_gets_its_reminder() -> Result<(), Error> {
        let dev = TimerDev::start().await?;
        dev.answer(&[InboxAnswer { status: Some(503), times: Some(3), ..InboxAnswer::default() }]).await?;
        let retry = RetryPolicy { max_retries: Some(10), initial_interval: Some("20m".into()), ..RetryPolicy::default() };
        let timer = NewTimer::http(dev.receiver("/late")).after(THIRTY_DAYS).retry(retry);
        let timer = dev.client.timers().create(&timer).await?;
        dev.advance("31d").await?;
        let attempts: Vec<_> = dev.wait_for(&Calls::of(&timer.id), 4).await?.iter().map(|call| call.attempt).collect();
        assert_eq!(attempts, [Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(dev.client.timers().get(&timer.id).await?.timer.status, Status::Completed);
        Ok(())
    }
}
