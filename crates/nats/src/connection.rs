use std::{convert::Infallible, future::ready, sync::Arc, thread, time::Duration};

use async_nats::{Client, ConnectOptions};
use domain::Backoff;
use tokio::{
    runtime,
    sync::{Mutex, Semaphore, mpsc, oneshot, watch},
    time::{Instant, timeout_at},
};

use crate::{
    CONFIRMED_WITHIN, Options, Outgoing, PublishError, Stored,
    events::Events,
    inbox::Inbox,
    link::Link,
    listening, metrics,
    options::Login,
    rounds::{self, Job, QUEUE_MAX},
    stream::{self, IN_FLIGHT_MAX},
    tls,
};

/// A server that leaves three pings in a row unanswered counts as gone.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(2);
/// Also before the first attempt after a loss: a server may end every connection right after it was made.
const RECONNECT_DELAYS: Backoff = Backoff::new(Duration::from_millis(20), RECONNECT_DELAY_MAX);
/// What waits there for the connection survives it, and would be sent much later over the next one, after its sender was told that it
/// failed. What the connection itself has taken ends with it.
const COMMANDS_WAITING_MAX: usize = 1;
/// The threads for name resolution.
const BLOCKING_THREADS_MAX: usize = 2;

/// The handle to a connection. It can be cloned, and used from any runtime.
#[derive(Clone)]
pub struct Connection {
    place: Arc<str>,
    link: watch::Receiver<Option<Arc<Link>>>,
    queue: mpsc::Sender<Job>,
    in_flight: Arc<Semaphore>,
}

/// Prepares a connection of this name to the servers in `options`: returns the handle, and the driver future that has to be
/// spawned.
///
/// The connection has a thread of its own while the future lives, and reconnects for ever. The future ends when the last handle
/// is dropped. It also ends, and logs an error, if the thread fails.
pub fn connection(options: Options, name: &'static str) -> (Connection, impl Future<Output = ()> + Send + 'static) {
    let (links, link) = watch::channel(None);
    let (queue, jobs) = mpsc::channel(QUEUE_MAX);
    let place = options.place().into();
    metrics::begin(name);
    let driver = async move {
        // This is dropped together with the future, which ends the thread.
        let (_stop, stopped) = oneshot::channel::<Infallible>();
        let (ending, ended) = oneshot::channel::<Infallible>();
        let log = tracing::dispatcher::get_default(Clone::clone);
        let work = move || {
            let _ending = ending;
            tracing::dispatcher::with_default(&log, || run(&options, name, &links, jobs, stopped));
        };
        match thread::Builder::new().name(format!("nats-{name}")).spawn(work) {
            // The channel never carries a value: this waits for the end of the thread.
            Ok(_) => drop(ended.await),
            Err(error) => tracing::error!(nats.connection = name, %error, "no thread for the connection to NATS"),
        }
        metrics::connected(name, false);
    };
    (Connection { place, link, queue, in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)) }, driver)
}

impl Connection {
    pub fn is_connected(&self) -> bool {
        self.link.borrow().as_ref().is_some_and(|link| link.is_up()) && !self.queue.is_closed()
    }

    /// The hosts and ports of the servers.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Publishes a message. `Ok` once the server has accepted it, with or without subscribers.
    ///
    /// Fails at once without a connection. Only while its state is still unknown, right after the start and right after a loss,
    /// this waits for the outcome of the first attempt to connect.
    pub async fn publish(&self, message: Outgoing) -> Result<(), PublishError> {
        let deadline = Instant::now() + CONFIRMED_WITHIN;
        self.connected(deadline).await?;
        let confirmed = async {
            let (verdict, confirmation) = oneshot::channel();
            let job = Job { message, reply: None, verdict };
            self.queue.send(job).await.map_err(|_| PublishError::NotConnected)?;
            confirmation.await.unwrap_or(Err(PublishError::Lost))
        };
        timeout_at(deadline, confirmed).await.unwrap_or(Err(PublishError::TimedOut))
    }

    /// Publishes a message to a stream. `Ok` once the stream has stored it, or has dropped it as a duplicate of a recent
    /// message with the same `message_id` (the header `Nats-Msg-Id`). Treats a missing connection as [`publish`](Self::publish)
    /// does.
    pub async fn publish_to_stream(&self, message: Outgoing, message_id: &str) -> Result<Stored, PublishError> {
        let deadline = Instant::now() + CONFIRMED_WITHIN;
        let link = self.connected(deadline).await?;
        let stored = async {
            let _permit = self.in_flight.acquire().await.map_err(|_| PublishError::NotConnected)?;
            stream::store(&link, &self.queue, message.with_message_id(message_id)).await
        };
        timeout_at(deadline, stored).await.unwrap_or(Err(PublishError::TimedOut))
    }

    /// The client of the library. Waits until the driver of this connection has started, not until a server is connected.
    /// Messages that are published through this client may be lost silently.
    pub async fn client(&self) -> Client {
        let mut link = self.link.clone();
        loop {
            if let Some(link) = link.borrow_and_update().as_ref() {
                return link.client.clone();
            }
            if link.changed().await.is_err() {
                // The driver was never started, and never will be.
                std::future::pending::<()>().await;
            }
        }
    }

    /// How many messages await a confirmation.
    #[cfg(test)]
    pub(crate) fn expected(&self) -> usize {
        self.link.borrow().as_ref().map_or(0, |link| link.inbox.expected().len())
    }

    /// Waits for a connection, at most this long. Returns whether there is one.
    pub async fn connected_within(&self, limit: Duration) -> bool {
        let connected = async {
            let link = self.link.clone().wait_for(Option::is_some).await.ok()?.clone()?;
            let mut changes = link.events.changes();
            loop {
                changes.mark_unchanged();
                if self.is_connected() {
                    return Some(());
                }
                changes.changed().await.ok()?;
            }
        };
        tokio::time::timeout(limit, connected).await.is_ok_and(|connected| connected.is_some())
    }

    /// Waits until it is known whether there is a connection.
    async fn connected(&self, deadline: Instant) -> Result<Arc<Link>, PublishError> {
        let known = async {
            let mut links = self.link.clone();
            let link = links.wait_for(Option::is_some).await.ok().and_then(|link| link.clone())?;
            let is_there = link.found().await && !self.queue.is_closed();
            is_there.then_some(link)
        };
        timeout_at(deadline, known).await.ok().flatten().ok_or(PublishError::NotConnected)
    }
}

/// The body of the connection's thread.
fn run(
    options: &Options,
    name: &'static str,
    links: &watch::Sender<Option<Arc<Link>>>,
    jobs: mpsc::Receiver<Job>,
    mut stopped: oneshot::Receiver<Infallible>,
) {
    let runtime = runtime::Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS_MAX).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(nats.connection = name, %error, "no runtime for the connection to NATS"),
    };
    runtime.block_on(async {
        let jobs = Arc::new(Mutex::new(jobs));
        loop {
            let link = match link(options, name).await {
                Ok(link) => Arc::new(link),
                Err(error) => return tracing::error!(nats.connection = name, %error, "the connection to NATS cannot be set up"),
            };
            links.send_replace(Some(link.clone()));
            let listening = tokio::spawn(listening::listen(link.clone()));
            let mut rounds = tokio::spawn(rounds::run(link, jobs.clone()));
            tokio::select! {
                _ = &mut stopped => return,
                ended = &mut rounds => {
                    if let Err(error) = ended {
                        tracing::error!(nats.connection = name, %error, "publishing to NATS has ended");
                    }
                    return;
                }
                // The library panics over some messages that any client can send, such as a lone carriage return in a header.
                _ = listening => tracing::error!(nats.connection = name, "the NATS client has ended: starting another"),
            }
            rounds.abort();
            metrics::connected(name, false);
            tokio::time::sleep(RECONNECT_DELAY_MAX).await;
        }
    });
    // Does not wait for a name server.
    runtime.shutdown_background();
}

/// Starts the client, which connects in the background.
async fn link(options: &Options, name: &'static str) -> Result<Link, Box<dyn std::error::Error + Send + Sync>> {
    let inbox = Arc::new(Inbox::default());
    let events = Arc::new(Events::new(name, options.place(), options.settings.clone(), inbox.clone()));
    let heard = events.clone();
    let roots = options.roots.clone().unwrap_or_else(tls::roots_of_this_machine);
    let library = ConnectOptions::new()
        .name(format!("timer {name}"))
        .retry_on_initial_connect()
        .reconnect_delay_callback(reconnect_delay)
        .ping_interval(PING_INTERVAL)
        .connection_timeout(CONNECT_TIMEOUT)
        .client_capacity(COMMANDS_WAITING_MAX)
        .require_tls(options.tls)
        .tls_client_config(tls::config(roots)?)
        .event_callback(move |event| {
            heard.take(event);
            ready(())
        });
    let library = match options.login.clone() {
        Login::Anonymous => library,
        Login::Token(token) => library.token(token),
        Login::User { name, password } => library.user_and_password(name, password),
    };
    let client = library.connect(options.servers.as_slice()).await?;
    inbox.open_at(client.new_inbox());
    Ok(Link { name, client, events, inbox })
}

/// The delay before the attempt with this number since the last connection.
fn reconnect_delay(attempt: usize) -> Duration {
    RECONNECT_DELAYS.after(u32::try_from(attempt).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_the_cap() {
        let delays: Vec<_> = [0, 1, 2, 3, 7, 8, 1000, usize::MAX].map(|attempt| reconnect_delay(attempt).as_millis()).into();
        assert_eq!(delays, [20, 20, 40, 80, 1280, 2000, 2000, 2000]);
    }
}
