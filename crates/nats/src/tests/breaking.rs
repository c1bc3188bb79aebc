//! Tries to get a confirmation for a message that did not arrive.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::jetstream::{self, consumer::DeliverPolicy};
use bytes::Bytes;
use futures_util::StreamExt;
use throwaway::Nats;
use tokio::task::JoinSet;

use super::{
    proxy::{Cuts, Proxy},
    rig::*,
};
use crate::{Connection, Outgoing, PublishError};

const PUBLISHERS: u64 = 32;
const CUTS: Cuts = Cuts { to_server: (500, 1_000_000), to_client: (700, 6_000) };

/// The outcomes of the publishes of all publishers.
#[derive(Default)]
struct Tally {
    confirmed: HashSet<String>,
    uncertain: usize,
    refused: usize,
}

impl Tally {
    fn take(&mut self, name: String, verdict: Result<(), PublishError>) {
        match verdict {
            Ok(()) => drop(self.confirmed.insert(name)),
            Err(error) if error.is_uncertain() => self.uncertain += 1,
            Err(_) => self.refused += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.confirmed.extend(other.confirmed);
        self.uncertain += other.uncertain;
        self.refused += other.refused;
    }
}

/// The progress of the publishers, and whether they have to stop.
#[derive(Clone, Default)]
struct Run {
    over: Arc<AtomicBool>,
    confirmed: Arc<AtomicU64>,
}

impl Run {
    fn stop(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Waits until some more messages have been confirmed.
    async fn goes_on(&self) {
        let before = self.confirmed.load(Ordering::SeqCst);
        until(|| self.confirmed.load(Ordering::SeqCst) > before + 100).await;
    }
}

/// Publishes messages with distinct names, as fast as they are confirmed or refused, until the run ends.
async fn publish_until<F>(run: &Run, publish: impl Fn(String) -> F + Clone + Send + Sync + 'static) -> Tally
where
    F: Future<Output = Result<(), PublishError>> + Send,
{
    let mut publishers = JoinSet::new();
    for publisher in 0..PUBLISHERS {
        let (run, publish) = (run.clone(), publish.clone());
        publishers.spawn(async move {
            let mut tally = Tally::default();
            for number in 0.. {
                if run.over.load(Ordering::SeqCst) {
                    break;
                }
                let name = format!("{publisher}-{number}");
                let verdict = publish(name.clone()).await;
                match &verdict {
                    Ok(()) => run.confirmed.fetch_add(1, Ordering::SeqCst),
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        0
                    }
                };
                tally.take(name, verdict);
            }
            tally
        });
    }
    let mut all = Tally::default();
    while let Some(tally) = publishers.join_next().await {
        all.add(tally.unwrap());
    }
    all
}

/// The name comes first, then a filling that makes the sizes differ. Some rounds exceed the buffer of the library, so that one
/// connection gets their beginning and another their end.
fn named(subject: &str, name: &str) -> Outgoing {
    let filling = "x".repeat(name.bytes().map(usize::from).product::<usize>() % 10_007);
    message(subject, format!("{name} {filling}"))
}

fn name_of(payload: &Bytes) -> String {
    str::from_utf8(payload).unwrap().split(' ').next().unwrap().to_owned()
}

#[test]
fn whatever_is_confirmed_has_arrived_however_connections_break() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        let proxy = Proxy::start(nats.port(), CUTS).await;
        let observer = witness(&nats.url()).await;
        let mut subscriber = subscribe(&observer, "breaking.core").await;
        let connection = start(&proxy.url());

        let run = Run::default();
        let watching = tokio::spawn({
            let run = run.clone();
            async move {
                let mut arrived = HashSet::new();
                loop {
                    let name = name_of(&next(&mut subscriber).await.payload);
                    if name == "end" {
                        return arrived;
                    }
                    arrived.insert(name);
                    if proxy.connections() > 200 {
                        run.stop();
                    }
                }
            }
        });
        let publish = move |name: String| {
            let connection = connection.clone();
            async move { connection.publish(named("breaking.core", &name)).await }
        };
        let tally = publish_until(&run, publish).await;
        // When the subscriber gets this message, the server has routed to it all that was confirmed before.
        observer.publish("breaking.core", "end".into()).await.unwrap();
        let arrived = watching.await.unwrap();

        println!(
            "{} confirmed, {} uncertain, {} refused, {} arrived",
            tally.confirmed.len(),
            tally.uncertain,
            tally.refused,
            arrived.len()
        );
        let missing: Vec<_> = tally.confirmed.difference(&arrived).collect();
        assert!(missing.is_empty(), "confirmed, but not arrived: {missing:?}");
        assert!(tally.confirmed.len() > 1000 && tally.uncertain > 100, "the test has not done its work");
    });
}

async fn create_stream(url: &str, name: &str, subject: &str) -> jetstream::stream::Stream {
    let config = jetstream::stream::Config { name: name.to_owned(), subjects: vec![subject.to_owned()], ..Default::default() };
    jetstream::new(witness(url).await).create_stream(config).await.unwrap()
}

/// The names of all messages in the stream.
async fn contents(url: &str, stream: &str) -> HashSet<String> {
    let mut stream = jetstream::new(witness(url).await).get_stream(stream).await.unwrap();
    let count = usize::try_from(stream.info().await.unwrap().state.messages).unwrap();
    let config = jetstream::consumer::pull::OrderedConfig { deliver_policy: DeliverPolicy::All, ..Default::default() };
    let messages = stream.create_consumer(config).await.unwrap().messages().await.unwrap();
    messages.take(count).map(|message| name_of(&message.unwrap().payload)).collect().await
}

fn store_in(connection: &Connection, subject: &'static str) -> impl Fn(String) -> StoreFuture + Clone + Send + Sync + 'static {
    let connection = connection.clone();
    move |name| {
        let connection = connection.clone();
        Box::pin(async move { connection.publish_to_stream(named(subject, &name), &name).await.map(drop) })
    }
}

type StoreFuture = std::pin::Pin<Box<dyn Future<Output = Result<(), PublishError>> + Send>>;

#[test]
fn whatever_a_stream_confirms_is_in_it_however_connections_break() {
    on_both_runtimes(|| async {
        let nats = Nats::start();
        create_stream(&nats.url(), "BREAKING", "breaking.stream").await;
        let proxy = Proxy::start(nats.port(), CUTS).await;
        let connection = start(&proxy.url());
        let run = Run::default();
        let publishing = tokio::spawn({
            let (run, publish) = (run.clone(), store_in(&connection, "breaking.stream"));
            async move { publish_until(&run, publish).await }
        });
        until(|| proxy.connections() > 100).await;
        run.stop();
        let tally = publishing.await.unwrap();

        let stored = contents(&nats.url(), "BREAKING").await;
        println!(
            "{} confirmed, {} uncertain, {} refused, {} stored",
            tally.confirmed.len(),
            tally.uncertain,
            tally.refused,
            stored.len()
        );
        assert!(tally.confirmed.is_subset(&stored));
        assert!(tally.confirmed.len() > 500 && tally.uncertain > 50, "the test has not done its work");
    });
}

#[test]
fn whatever_a_stream_confirms_is_in_it_however_the_server_dies() {
    on_both_runtimes(|| async {
        let nats = Arc::new(Nats::start());
        create_stream(&nats.url(), "DYING", "dying.stream").await;
        let connection = connect(&nats.url()).await;
        let run = Run::default();
        let publishing = tokio::spawn({
            let (run, publish) = (run.clone(), store_in(&connection, "dying.stream"));
            async move { publish_until(&run, publish).await }
        });
        for _ in 0..10 {
            run.goes_on().await;
            let killed = nats.clone();
            tokio::task::spawn_blocking(move || {
                killed.stop_immediate();
                killed.start_again();
            })
            .await
            .unwrap();
        }
        run.stop();
        let tally = publishing.await.unwrap();
        let stored = contents(&nats.url(), "DYING").await;
        println!(
            "{} confirmed, {} uncertain, {} refused, {} stored",
            tally.confirmed.len(),
            tally.uncertain,
            tally.refused,
            stored.len()
        );
        assert!(tally.confirmed.is_subset(&stored));
        assert!(tally.confirmed.len() > 1000 && tally.uncertain > 10, "the test has not done its work");
    });
}

#[test]
fn a_dead_server_confirms_nothing() {
    on_both_runtimes(|| async {
        let nats = Arc::new(Nats::start());
        let connection = connect(&nats.url()).await;
        // Odd while the server is known to be dead.
        let epoch = Arc::new(AtomicU64::new(0));
        let run = Run::default();
        let publishing = tokio::spawn({
            let (run, epoch, connection) = (run.clone(), epoch.clone(), connection.clone());
            let publish = move |name: String| {
                let (epoch, connection) = (epoch.clone(), connection.clone());
                async move {
                    let before = epoch.load(Ordering::SeqCst);
                    let verdict = connection.publish(named("dead", &name)).await;
                    let is_dead = before % 2 == 1 && epoch.load(Ordering::SeqCst) == before;
                    assert!(!is_dead || verdict.is_err(), "a dead server has confirmed {name}");
                    verdict
                }
            };
            async move { publish_until(&run, publish).await }
        });
        for _ in 0..15 {
            run.goes_on().await;
            let (killed, epoch) = (nats.clone(), epoch.clone());
            tokio::task::spawn_blocking(move || {
                killed.stop_immediate();
                epoch.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(50));
                epoch.fetch_add(1, Ordering::SeqCst);
                killed.start_again();
            })
            .await
            .unwrap();
        }
        run.stop();
        let tally = publishing.await.unwrap();
        println!("{} confirmed, {} uncertain, {} refused", tally.confirmed.len(), tally.uncertain, tally.refused);
        assert!(tally.confirmed.len() > 1000 && tally.refused > 100, "the test has not done its work");
    });
}
