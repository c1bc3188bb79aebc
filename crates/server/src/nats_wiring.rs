//! What runs over NATS: callbacks of type `nats`, and the NATS command consumer.

use std::{sync::Arc, time::Duration};

use api::{HealthItem, Reading};
use async_trait::async_trait;
use broker::{Broker, BrokerError, CommandConsumer, NatsBroker, PlatformSubjects};
use commands::Commands;
use delivery::{Announcer, Deliverer, EventSender, Failure, FailureKind, NamespaceRules, NatsSender, SubjectCheck};
use domain::{Clock, Invalid, Timer, TraceContext};
use nats::Connection;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::settings::Settings;

/// How long the commands at hand may take to be seen through when the service stops: a call of the store and its reading back, and
/// what the consumer itself waits for the broker.
const CONSUMER_DRAIN_TIME: Duration = Duration::from_secs(30);

/// How long an event waits for the connection before it is tried again later.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);

/// The connections to the NATS server, as far as they are wanted. Each works for itself, so that a burst of callbacks does not
/// hold up commands.
#[derive(Default)]
pub struct NatsWiring {
    callbacks: Option<Connection>,
    broker: Option<(Connection, Arc<NatsBroker>)>,
    platform: PlatformSubjects,
    namespaces: Arc<NamespaceRules>,
    /// A connection ended for a reason it must not have.
    broken: CancellationToken,
}

impl NatsWiring {
    /// Begins to connect, and goes on in the background: the service starts without the server, too. A connection that ends
    /// for good stops the service: one that never publishes again only looks alive.
    pub fn open(settings: &Settings, stop: &CancellationToken) -> Self {
        let Some(options) = &settings.nats else { return Self::default() };
        let (broken, platform) = (CancellationToken::new(), PlatformSubjects::default());
        let connect = |name| {
            let (connection, driver) = nats::connection(options.clone(), name);
            let (stop, broken) = (stop.clone(), broken.clone());
            tokio::spawn(async move {
                driver.await;
                if !stop.is_cancelled() {
                    tracing::error!(nats.connection = name, "the connection to NATS has ended for good; stopping");
                    broken.cancel();
                    stop.cancel();
                }
            });
            connection
        };
        let broker = settings.has_command_consumer.then(|| {
            let connection = connect("broker");
            (connection.clone(), Arc::new(NatsBroker::new(connection, platform.clone())))
        });
        let callbacks = connect("callbacks");
        let learning = broker::learn_platform_subjects(callbacks.clone(), platform.clone());
        // It has a handle to the connection, which ends with the last one.
        tokio::spawn(stop.clone().run_until_cancelled_owned(learning));
        let namespaces = Arc::clone(&settings.delivery.namespaces);
        Self { callbacks: Some(callbacks), broker, platform, namespaces, broken }
    }

    /// Where callbacks may publish to: never to the platform's own subjects, and within those of their namespace. `None`
    /// without a NATS server.
    fn subject_check(&self) -> Option<SubjectCheck> {
        self.callbacks.as_ref()?;
        let (platform, namespaces) = (self.platform.clone(), Arc::clone(&self.namespaces));
        Some(Arc::new(move |namespace, subject| match platform.owning(subject) {
            Some(own) => Err(Invalid::new("callback.topic", format!("must not be a subject of the platform itself: {own}"))),
            None => namespaces.check_subject(namespace, subject),
        }))
    }

    /// Gives the deliverer what it needs for callbacks and events over NATS.
    pub fn equip(&self, mut deliverer: Deliverer, clock: &Arc<dyn Clock>) -> Deliverer {
        if let (Some(connection), Some(check)) = (&self.callbacks, self.subject_check()) {
            deliverer = deliverer.with(NatsSender::new(connection.clone(), check, self.platform.known()));
        }
        if let Some((connection, broker)) = &self.broker {
            let broker = Arc::clone(broker) as Arc<dyn Broker>;
            let events = BrokerAnnouncer { connection: connection.clone(), broker, clock: Arc::clone(clock) };
            deliverer = deliverer.with(EventSender::new(Arc::new(events)));
        }
        deliverer
    }

    /// Opens the NATS command consumer, if it is wanted. It closes on `stop`, and a consumer that breaks stops the service.
    pub fn start_consumer(&self, commands: Commands, stop: CancellationToken) -> RunningConsumer {
        RunningConsumer(self.broker.as_ref().map(|(_, broker)| {
            let consumer = CommandConsumer::new(Arc::clone(broker) as Arc<dyn Broker>, commands);
            tokio::spawn(async move {
                let _stop_in_any_case = stop.clone().drop_guard();
                consumer.run(stop).await;
            })
        }))
    }

    /// Whether a connection ended for good.
    pub fn is_broken(&self) -> bool {
        self.broken.is_cancelled()
    }

    /// How the connections are. A server that is away is no reason to restart the service: timers over HTTP go on.
    pub fn health(&self) -> Vec<HealthItem> {
        let connections = [("nats", self.callbacks.as_ref()), ("broker", self.broker.as_ref().map(|(connection, _)| connection))];
        connections.into_iter().filter_map(|(name, connection)| connection.map(|connection| item(name, connection))).collect()
    }
}

fn item(name: &'static str, connection: &Connection) -> HealthItem {
    let connection = connection.clone();
    let read = move || {
        let value = if connection.is_connected() { "connected" } else { "disconnected" };
        Reading { value: value.into(), well: true }
    };
    HealthItem { name, read: Arc::new(read) }
}

/// The NATS command consumer while it is open.
pub struct RunningConsumer(Option<JoinHandle<()>>);

impl RunningConsumer {
    /// Waits until the commands at hand are seen through. `false` when the consumer broke.
    pub async fn closed(self) -> bool {
        let Some(consumer) = self.0 else { return true };
        match tokio::time::timeout(CONSUMER_DRAIN_TIME, consumer).await {
            Ok(ended) => ended.is_ok(),
            Err(_) => {
                tracing::warn!("commands were still under way after {CONSUMER_DRAIN_TIME:?}; the broker will deliver them again");
                true
            }
        }
    }
}

/// Lets the deliverer publish events without knowing the broker.
struct BrokerAnnouncer {
    connection: Connection,
    broker: Arc<dyn Broker>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Announcer for BrokerAnnouncer {
    async fn announce(&self, timer: &Timer, attempt: u32, trace: Option<&TraceContext>) -> Result<(), Failure> {
        // While the broker is away, thousands of events must not keep the store busy with failing at once.
        self.connection.connected_within(CONNECTED_WITHIN).await;
        broker::announce(self.broker.as_ref(), timer, attempt, trace, self.clock.now()).await.map_err(failure)
    }
}

fn failure(error: BrokerError) -> Failure {
    Failure::new(FailureKind::Broker, error.to_string())
}
