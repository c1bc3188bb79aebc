//! `timer listen`: forwards copies of calls to a receiver on this machine. Only this side connects, and what the copy meets has no
//! influence on the timer.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use client::{Client, Error, EventQuery, PageQuery, TimerDetail, webhook::Secret};
use domain::Span;
use futures_util::TryStreamExt;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::time::Instant;

use crate::{
    ConnectionOptions, Context, Failure,
    connection::span,
    filter::filter,
    output::{print, say},
};

/// How long the receiver may take.
const FORWARD_TIME: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Args)]
pub struct ListenOptions {
    /// Conditions in the words of `timer list`; everything that the key opens unless given
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// Where the copies go, such as http://localhost:3000/hooks
    #[arg(long, value_name = "URL")]
    pub forward_to: String,
    /// The secret that copies are signed with: whsec_…; made up unless given
    #[arg(long, value_name = "SECRET")]
    pub secret: Option<String>,
    /// Print the secret
    #[arg(long)]
    pub print_secret: bool,
    /// First forward the calls of timers that were created within this time and have ended
    #[arg(long, value_name = "DURATION", value_parser = span)]
    pub replay: Option<Span>,
    /// End after so many calls
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

struct Forwarder<'a> {
    http: legacy::Client<HttpConnector, Full<Bytes>>,
    to: &'a str,
    secret: Secret,
    context: &'a Context,
}

pub async fn run(options: &ListenOptions, context: &Context) -> Result<(), Failure> {
    let client = options.connection.client(context)?;
    let secret = options.secret.clone().unwrap_or_else(made_up_secret);
    if options.print_secret {
        print(format_args!("{secret}"))?;
    }
    let secret = Secret::parse(&secret).map_err(|doubt| Failure::usage(doubt.to_string()))?;
    let http = legacy::Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let forwarder = Forwarder { http, to: &options.forward_to, secret, context };
    let filter = filter(&options.filter, context)?;
    let mut left = options.limit.unwrap_or(u64::MAX);
    if let Some(replay) = options.replay {
        let since = context.clock.now().saturating_sub(replay).to_string();
        let ended = filter.clone().with("created_from", since).status("completed,failed");
        let query = PageQuery { order: Some("asc".to_owned()), ..ended.into() };
        let mut timers = Box::pin(client.timers().list(query));
        while let Some(timer) = timers.try_next().await? {
            if left == 0 {
                break;
            }
            left -= u64::from(forwarder.forward(&client, &timer.id).await?);
        }
    }
    let mut events = client.events(EventQuery { filter, types: Some("finished".to_owned()), after: None });
    while left > 0 {
        let (event, _) = events.next_raw().await?;
        if event.kind == "position" {
            continue;
        }
        let Some(timer) = event.timer else { continue };
        // A cancel is an end without a call.
        if matches!(timer.status, client::Status::Completed | client::Status::Failed) {
            left -= u64::from(forwarder.forward(&client, &timer.id).await?);
        }
    }
    Ok(())
}

fn made_up_secret() -> String {
    // 32 bytes in base64, of which 256 bits are random.
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = (0..42).map(|_| char::from(LETTERS[rand::random_range(0..64)]));
    format!("whsec_{}", letters.chain(['A', '=']).collect::<String>())
}

impl Forwarder<'_> {
    /// Says whether there was something to forward.
    async fn forward(&self, client: &Client, id: &str) -> Result<bool, Failure> {
        let timer = match client.timers().get(id).await {
            Ok(timer) => timer,
            // Removed since.
            Err(Error::NotFound(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let begun = Instant::now();
        let outcome = match tokio::time::timeout(FORWARD_TIME, self.send(&timer)).await {
            Ok(Ok(status)) => status,
            Ok(Err(cause)) => cause,
            Err(_) => "no answer".to_owned(),
        };
        let (millis, at) = (begun.elapsed().as_millis(), self.context.clock.now());
        let name = timer.timer.key.as_deref().unwrap_or(&timer.timer.id);
        say(format_args!("{at}  {name}  {} → {} {outcome} ({millis} ms)", timer.timer.status, self.to));
        Ok(true)
    }

    async fn send(&self, timer: &TimerDetail) -> Result<String, String> {
        let body = timer.payload().map(|payload| payload.to_string()).unwrap_or_default();
        let seconds = self.context.clock.now().as_micros().div_euclid(1_000_000);
        let webhook_id = format!("{}_{}", timer.timer.id.replace('-', ""), timer.timer.revision);
        let mut request = Request::post(self.to)
            .header("content-type", "application/json")
            .header("x-timer-id", &timer.timer.id)
            .header("x-timer-namespace", &timer.timer.namespace)
            .header("x-timer-attempt", timer.more.attempt)
            .header("x-timer-scheduled-at", crate::rows::rfc3339(timer.timer.execute_at))
            .header("webhook-id", &webhook_id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.secret.sign(&webhook_id, seconds, body.as_bytes()));
        if let Some(id) = &timer.more.correlation_id {
            request = request.header("x-correlation-id", id);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
        let answer = self.http.request(request).await.map_err(|error| root_cause(&error))?;
        let status = answer.status().to_string();
        drop(answer.into_body().collect().await);
        Ok(status)
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
