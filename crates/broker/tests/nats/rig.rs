//! What the tests share: a server, processes with a consumer, and a client that observes the server.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::jetstream::{self, Context, consumer, context::ContextBuilder, stream};
use broker::{CommandConsumer, NatsBroker, PlatformSubjects};
use commands::{Commands, Rules, Searches, Stats, Stores};
use domain::{Caller, Clock, Horizon, Key, KindSet, Namespace, Span, SystemClock, Timer, TimerId, Timestamp};
use futures_util::StreamExt;
use nats::{Connection, Options};
use store::{DueEntry, Filter, TimerStore};
use store_testing::{Faulty, Model};
use throwaway::Nats;
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

pub const TIMEOUT: Duration = Duration::from_secs(60);
pub const COMMANDS: &str = "TIMER_COMMANDS";
pub const EVENTS: &str = "TIMER_EVENTS";
pub const DEAD: &str = "timer.commands.dead";

/// A process with a consumer, reduced to what matters here.
pub struct Process {
    pub broker: Arc<NatsBroker>,
    pub store: Arc<Faulty<Model>>,
    /// How many timers were scheduled or moved.
    scheduled: watch::Receiver<usize>,
    commands: Commands,
    stop: CancellationToken,
    consumer: Mutex<Option<JoinHandle<()>>>,
}

/// A connection whose driver runs, though it may not be connected.
pub fn connection(url: &str) -> Connection {
    let (connection, driver) = nats::connection(Options::from_url("NATS_URL", url).unwrap(), "broker");
    tokio::spawn(driver);
    connection
}

impl Process {
    /// A process whose consumer does not run.
    pub fn closed(url: &str) -> Self {
        // The log is shown with a test that fails. Another test may have installed the subscriber already.
        drop(tracing_subscriber::fmt().with_ansi(false).with_test_writer().try_init());
        let clock = Arc::new(SystemClock::default());
        let model = Arc::new(Model::new(clock.clone() as Arc<dyn Clock>, 1));
        let store = Arc::new(Faulty::new(model));
        let (count, scheduled) = watch::channel(0);
        let nudge = Arc::new(move |entries: &[DueEntry]| count.send_modify(|count| *count += entries.len()));
        let horizon = Horizon { min_delay: Span::ZERO, max_horizon: None };
        let rules = Rules { horizon, callbacks: KindSet::REQUESTABLE, callback_check: Arc::new(|_, _| Ok(())) };
        let commands = Commands {
            stores: Stores::of(store.clone()),
            clock,
            rules,
            nudge,
            caller: Caller::Administrator,
            searches: Searches::default(),
            stats: Stats::default(),
        };
        let broker = Arc::new(NatsBroker::new(connection(url), PlatformSubjects::default()));
        Self { broker, store, scheduled, commands, stop: CancellationToken::new(), consumer: Mutex::new(None) }
    }

    pub fn start(url: &str) -> Self {
        let process = Self::closed(url);
        process.open();
        process
    }

    pub fn open(&self) {
        let consumer = CommandConsumer::new(self.broker.clone(), self.commands.clone());
        *self.consumer.lock().unwrap() = Some(tokio::spawn(consumer.run(self.stop.clone())));
    }

    pub async fn stop(&self) {
        self.stop.cancel();
        let consumer = self.consumer.lock().unwrap().take().unwrap();
        timeout(TIMEOUT, consumer).await.expect("the consumer does not stop").unwrap();
    }

    /// Kills the process without a graceful shutdown.
    pub fn kill(&self) {
        self.consumer.lock().unwrap().take().unwrap().abort();
    }

    /// Waits until this many were scheduled or moved, repetitions included.
    pub async fn scheduled(&self, count: usize) {
        let mut scheduled = self.scheduled.clone();
        let reached = timeout(TIMEOUT, scheduled.wait_for(|scheduled| *scheduled >= count)).await;
        reached.unwrap_or_else(|_| panic!("{} of {count} scheduled", *self.scheduled.borrow())).unwrap();
    }

    pub async fn timers(&self) -> u64 {
        self.store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap().timers
    }

    pub async fn timer(&self, key: &str) -> Option<Timer> {
        let id = TimerId::keyed(&Namespace::parse("acme").unwrap(), &Key::parse(key).unwrap());
        self.store.get(id).await.unwrap()
    }

    pub async fn until_timers(&self, count: u64) {
        until(async || self.timers().await >= count).await;
    }
}

/// The bare payload of a command that is due in an hour.
pub fn command(key: &str) -> String {
    format!(r#"{{"tenantId":"acme","serviceCallId":"{key}","dueAt":"{}"}}"#, in_an_hour())
}

pub fn in_an_hour() -> Timestamp {
    SystemClock::default().now().saturating_add(Span::from_secs(3600))
}

/// Polls until the condition holds.
pub async fn until(condition: impl AsyncFn() -> bool) {
    let holds = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TIMEOUT, holds).await.expect("what the test waits for does not happen");
}

/// Another client of the same server. The service has made the streams that it uses, or will make them.
pub struct Witness {
    pub context: Context,
}

impl Witness {
    pub async fn at(nats: &Nats) -> Self {
        Self::of(&nats.url()).await
    }

    pub async fn of(url: &str) -> Self {
        let servers: Vec<_> = url.split(',').map(str::to_owned).collect();
        let client = async_nats::ConnectOptions::new().retry_on_initial_connect().connect(servers).await.unwrap();
        Self { context: ContextBuilder::new().timeout(Duration::from_secs(1)).build(client) }
    }

    /// Waits until the service has created its streams and its consumer.
    pub async fn until_ready(&self) {
        until(async || self.consumer().await.is_some() && self.stream(EVENTS).await.is_some()).await;
    }

    pub async fn stream(&self, name: &str) -> Option<stream::Info> {
        self.context.get_stream(name).await.ok().map(|stream| stream.cached_info().clone())
    }

    pub async fn consumer(&self) -> Option<consumer::Info> {
        let stream = self.context.get_stream(COMMANDS).await.ok()?;
        stream.consumer_info("timer").await.ok()
    }

    /// Sends a command; returns once the stream has it.
    pub async fn send(&self, body: impl Into<String>) {
        self.context.publish("timer.commands.schedule", body.into().into()).await.unwrap().await.unwrap();
    }

    /// Sends a command until the stream confirms it, however many attempts that takes.
    pub async fn send_surely(&self, body: &str) {
        let sent = async {
            loop {
                if let Ok(acknowledged) = self.context.publish("timer.commands.schedule", body.to_owned().into()).await
                    && acknowledged.await.is_ok()
                {
                    return;
                }
            }
        };
        timeout(TIMEOUT, sent).await.expect("the stream does not take a command");
    }

    /// Sends many at once; returns once the stream has all of them.
    pub async fn send_all(&self, bodies: impl IntoIterator<Item = String>) {
        let mut acknowledged = Vec::new();
        for body in bodies {
            acknowledged.push(self.context.publish("timer.commands.schedule", body.into()).await.unwrap().into_future());
        }
        for acknowledged in acknowledged {
            acknowledged.await.unwrap();
        }
    }

    /// Waits until every command has its verdict.
    pub async fn until_settled(&self) {
        until(async || self.consumer().await.is_some_and(|consumer| consumer.num_pending == 0 && consumer.num_ack_pending == 0))
            .await;
    }

    /// All messages of a stream with this subject, once there are this many.
    pub async fn messages(&self, stream: &str, subject: &str, count: usize) -> Vec<jetstream::Message> {
        let stream = self.context.get_stream(stream).await.unwrap();
        let config = consumer::pull::OrderedConfig { filter_subject: subject.to_owned(), ..Default::default() };
        let messages = stream.create_consumer(config).await.unwrap().messages().await.unwrap();
        let collected = messages.take(count).map(Result::unwrap).collect();
        timeout(TIMEOUT, collected).await.expect("not all messages came")
    }

    pub async fn count(&self, stream: &str) -> u64 {
        self.stream(stream).await.unwrap().state.messages
    }
}

pub fn header<'a>(message: &'a jetstream::Message, name: &str) -> Option<&'a str> {
    message.headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str)
}
