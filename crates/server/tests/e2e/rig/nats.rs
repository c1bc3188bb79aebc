//! The other side of NATS: a client that publishes, listens, and reads what a stream holds.

mod commands;
mod listener;
mod load;
mod witness;

use std::time::Duration;

use async_nats::{
    ConnectOptions, HeaderMap,
    jetstream::{self, context::ContextBuilder, stream},
};
use bytes::Bytes;
use futures_util::StreamExt;
use rustls::crypto::ring;

use super::{eventually, tolerated};

pub use commands::{COMMAND_SUBJECT, COMMANDS, CONSUMER, DEAD_SUBJECT, EVENTS, Event, schedule_timer};
pub use listener::Listener;
pub use load::{Account, Load, Sent};
pub use witness::Witness;

/// How long an acknowledgement may take before it counts as none.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(3);
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// More than any test sends at once: a listener that is too slow would lose messages on its own side.
const MESSAGES_WAITING_MAX: usize = 1 << 17;
const TIMEOUT: Duration = Duration::from_secs(20);

/// One message, as it was heard or as a stream holds it.
#[derive(Debug, Clone)]
pub struct Message {
    pub subject: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// When it arrived, or when the stream took it, by the wall clock in microseconds.
    pub at: i64,
    /// Its place in the stream; 0 when it was heard.
    pub sequence: u64,
}

impl Message {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.as_str()).unwrap_or_default()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of UTF-8")
    }
}

/// Whether a stream holds the message is unknown.
#[derive(Debug)]
pub struct Unacknowledged;

/// A connection of the test's own. Clones share it. It reconnects by itself.
#[derive(Clone)]
pub struct Bus {
    client: async_nats::Client,
    jetstream: jetstream::Context,
}

impl Bus {
    pub async fn connect(url: &str) -> Self {
        Self::connect_as(url, ConnectOptions::new()).await
    }

    /// Connects to servers that ask who is there.
    pub async fn connect_as(urls: &str, options: ConnectOptions) -> Self {
        // The library asks for the default of the process.
        ring::default_provider().install_default().ok();
        let urls: Vec<&str> = urls.split(',').collect();
        let options = options
            .reconnect_delay_callback(|_| RECONNECT_PAUSE)
            .subscription_capacity(MESSAGES_WAITING_MAX)
            .connection_timeout(Duration::from_secs(2));
        let client = options.connect(urls).await.expect("a NATS server that lets the test in");
        let jetstream =
            ContextBuilder::new().timeout(ACKNOWLEDGED_WITHIN).max_ack_inflight(MESSAGES_WAITING_MAX).build(client.clone());
        Self { client, jetstream }
    }

    /// Publishes and waits until a stream has stored it; its place there.
    pub async fn publish(&self, subject: &str, body: impl Into<Bytes>) -> Result<u64, Unacknowledged> {
        let acknowledgement = self.jetstream.publish(subject.to_owned(), body.into()).await.map_err(|_| Unacknowledged)?;
        acknowledgement.await.map(|stored| stored.sequence).map_err(|_| Unacknowledged)
    }

    /// A stream with the usual settings of a careful operator.
    pub async fn make_stream(&self, name: &str, subject: &str, replicas: usize) {
        let config = stream::Config {
            name: name.to_owned(),
            subjects: vec![subject.to_owned()],
            num_replicas: replicas,
            duplicate_window: Duration::from_secs(600),
            ..stream::Config::default()
        };
        self.jetstream.create_stream(config).await.unwrap_or_else(|error| panic!("the stream {name}: {error}"));
    }

    pub async fn make_stream_as(&self, config: stream::Config) {
        self.jetstream.create_stream(config).await.expect("a stream");
    }

    pub async fn stream_config(&self, name: &str) -> stream::Config {
        self.jetstream.get_stream(name).await.expect("a stream of this name").cached_info().config.clone()
    }

    /// The streams and the consumer of commands as the service makes them, except that the broker delivers again sooner what was not
    /// acknowledged: no test has to wait for that as long as in production.
    pub async fn make_impatient_consumer(&self, delivered_again_after: Duration) {
        self.make_stream(COMMANDS, "timer.commands.>", 1).await;
        self.make_stream(EVENTS, "timer.events.>", 1).await;
        let consumer = jetstream::consumer::pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            ack_wait: delivered_again_after,
            max_ack_pending: 4096,
            ..jetstream::consumer::pull::Config::default()
        };
        self.jetstream.create_consumer_on_stream(consumer, COMMANDS).await.expect("a consumer");
    }

    /// What the server says of a consumer.
    pub async fn consumer(&self, stream: &str, name: &str) -> jetstream::consumer::Info {
        let stream = self.jetstream.get_stream(stream).await.expect("a stream of this name");
        stream.consumer_info(name).await.expect("a consumer of this name")
    }

    pub async fn wait_for_stream(&self, name: &str) {
        eventually(&format!("the stream {name} exists"), TIMEOUT, async || self.jetstream.get_stream(name).await.ok()).await;
    }

    /// Begins to listen; when this returns, the server knows.
    pub async fn listen(&self, subject: &str) -> Listener {
        let subscription = self.client.subscribe(subject.to_owned()).await.expect("a subject that can be listened to");
        self.round_trip().await;
        Listener::start(subscription)
    }

    /// Everything that a stream holds, from its beginning.
    pub fn witness(&self, stream: &str) -> Witness {
        Witness::new(self.jetstream.clone(), stream)
    }

    /// The server handles what comes over one connection in order: when this message is back, everything before it was handled.
    /// A flush of the library asks the server nothing.
    async fn round_trip(&self) {
        let inbox = self.client.new_inbox();
        let mut back = self.client.subscribe(inbox.clone()).await.expect("an inbox");
        self.client.publish(inbox, Bytes::new()).await.expect("a message to ourselves");
        tokio::time::timeout(tolerated(TIMEOUT), back.next())
            .await
            .expect("a server that answers")
            .expect("a subscription that stays");
    }
}
