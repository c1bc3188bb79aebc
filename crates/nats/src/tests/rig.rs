//! What the tests share.

use std::{
    future::Future,
    io,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use throwaway::{Nats, NatsUser};
use tokio::{runtime, time::timeout};
use tracing_subscriber::fmt::MakeWriter;

use crate::{Connection, Options, Outgoing, connection};

pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs a test on both kinds of runtime: the kind that the caller has must not matter.
pub(super) fn on_both_runtimes<F: Future<Output = ()>>(test: impl Fn() -> F) {
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test());
    runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap().block_on(test());
}

/// A connection whose driver runs, though it may not be connected.
pub(super) fn start(url: &str) -> Connection {
    start_with(Options::from_url("NATS_URL", url).unwrap())
}

pub(super) fn start_with(options: Options) -> Connection {
    let (connection, driver) = connection(options, "test");
    tokio::spawn(driver);
    connection
}

pub(super) async fn connect(url: &str) -> Connection {
    let connection = start(url);
    until(|| connection.is_connected()).await;
    connection
}

/// The address of the server with this user in it.
pub(super) fn as_user(nats: &Nats, user: &str, password: &str) -> String {
    nats.url().replace("://", &format!("://{user}:{password}@"))
}

pub(super) async fn until(condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(TIMEOUT, holds).await.expect("what the test waits for does not happen");
}

/// A client of the library that observes the server.
pub(super) async fn witness(url: &str) -> Client {
    let url: url::Url = url.parse().unwrap();
    let options = async_nats::ConnectOptions::new();
    let options = match url.password() {
        Some(password) => options.user_and_password(url.username().to_owned(), password.to_owned()),
        None => options,
    };
    options.connect(url.as_str()).await.unwrap()
}

/// Subscribes, and returns once the server knows the subscription.
pub(super) async fn subscribe(client: &Client, subject: &str) -> Subscriber {
    let subscriber = client.subscribe(subject.to_owned()).await.unwrap();
    let inbox = client.new_inbox();
    let mut echo = client.subscribe(inbox.clone()).await.unwrap();
    client.publish(inbox, Bytes::new()).await.unwrap();
    echo.next().await.unwrap();
    subscriber
}

pub(super) async fn next(subscriber: &mut Subscriber) -> async_nats::Message {
    timeout(TIMEOUT, subscriber.next()).await.expect("no message came").expect("the subscription has ended")
}

pub(super) fn message(subject: &str, payload: impl Into<Bytes>) -> Outgoing {
    Outgoing { subject: subject.to_owned(), headers: Vec::new(), payload: payload.into() }
}

/// A user with these permissions to publish and to subscribe.
pub(super) fn limited(name: &str, publish: &[&str], subscribe: &[&str]) -> NatsUser {
    NatsUser::limited(name, "secret", publish, subscribe)
}

/// The lines that are logged on this thread, and by the connections that are started on it.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub fn capture() -> (Self, tracing::subscriber::DefaultGuard) {
        // While there is only one subscriber, a log line that another test reaches first, without a subscriber, is disabled for
        // all.
        static ANOTHER: OnceLock<tracing::Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| tracing::Dispatch::new(tracing_subscriber::registry()));
        let log = Self::default();
        let subscriber =
            tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(log.clone());
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines of this crate.
    pub fn ours(&self) -> Vec<String> {
        self.text().lines().filter(|line| line.contains(" nats::")).map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
