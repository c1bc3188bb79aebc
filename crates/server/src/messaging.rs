//! What runs over NATS: callbacks of type `nats`, and the broker door.

use std::{sync::Arc, time::Duration};

use api::{HealthItem, Reading};
use async_trait::async_trait;
use broker::{Broker, BrokerError, Door, NatsBroker};
use commands::Commands;
use delivery::{Announcer, Deliverer, Failure, FailureKind};
use domain::{Clock, Timer};
use nats::Connection;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::settings::Settings;

/// How long the commands at hand may take to be seen through when the service stops.
const DOOR_TIME: Duration = Duration::from_secs(10);

/// The connections to the NATS server, as far as they are wanted. Each works for itself, so that a burst of callbacks does not
/// hold up commands.
#[derive(Default)]
pub struct Messaging {
    callbacks: Option<Connection>,
    broker: Option<(Connection, Arc<NatsBroker>)>,
}

impl Messaging {
    /// Begins to connect, and goes on in the background: the service starts without the server, too.
    pub fn open(settings: &Settings) -> Self {
        let Some(options) = &settings.nats else { return Self::default() };
        let connect = |name| {
            let (connection, driver) = nats::connection(options.clone(), name);
            tokio::spawn(driver);
            connection
        };
        let broker = settings.has_broker_door.then(|| {
            let connection = connect("broker");
            (connection.clone(), Arc::new(NatsBroker::new(connection)))
        });
        Self { callbacks: Some(connect("callbacks")), broker }
    }

    /// Gives the deliverer what it needs for callbacks and events over NATS.
    pub fn equip(&self, mut deliverer: Deliverer, clock: &Arc<dyn Clock>) -> Deliverer {
        if let Some(connection) = &self.callbacks {
            deliverer = deliverer.with_nats(connection.clone());
        }
        if let Some((_, broker)) = &self.broker {
            let events = Events { broker: Arc::clone(broker) as Arc<dyn Broker>, clock: Arc::clone(clock) };
            deliverer = deliverer.with_events(Arc::new(events));
        }
        deliverer
    }

    /// Opens the broker door, if it is wanted. It closes on `stop`, and a door that breaks stops the service.
    pub fn open_door(&self, commands: Commands, stop: CancellationToken) -> OpenDoor {
        OpenDoor(self.broker.as_ref().map(|(_, broker)| {
            let door = Door::new(Arc::clone(broker) as Arc<dyn Broker>, commands);
            tokio::spawn(async move {
                let _stop_in_any_case = stop.clone().drop_guard();
                door.run(stop).await;
            })
        }))
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

/// The broker door while it is open.
pub struct OpenDoor(Option<JoinHandle<()>>);

impl OpenDoor {
    /// Waits until the commands at hand are seen through. `false` when the door broke.
    pub async fn closed(self) -> bool {
        let Some(door) = self.0 else { return true };
        match tokio::time::timeout(DOOR_TIME, door).await {
            Ok(ended) => ended.is_ok(),
            Err(_) => {
                tracing::warn!("commands were still under way after {DOOR_TIME:?}; the broker will deliver them again");
                true
            }
        }
    }
}

/// Lets the deliverer publish events without knowing the broker.
struct Events {
    broker: Arc<dyn Broker>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Announcer for Events {
    async fn announce(&self, timer: &Timer, attempt: u32) -> Result<(), Failure> {
        broker::announce(self.broker.as_ref(), timer, attempt, self.clock.now()).await.map_err(failure)
    }
}

fn failure(error: BrokerError) -> Failure {
    Failure::new(FailureKind::Broker, error.to_string())
}
