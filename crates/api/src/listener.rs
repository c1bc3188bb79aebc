//! Puts the API on a socket. Axum's own `serve` sets no time limits and leaves strictness to the parser; here a client gets
//! only so much time for each part of a request, and a head that two readers could read differently is refused.

mod connection;
mod gate;
mod head;
mod refusal;
mod signal;

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{gate::Fault, signal::Signal};
use crate::{Limits, door::Door, error::ApiError};

/// How long accepting rests after it failed, for want of file descriptors say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How many connections are told politely, at the same time, that there are too many.
const REFUSALS_MAX: usize = 64;

/// Serves `router` on `listener` until `shutdown`; then takes no more connections and finishes the requests in flight.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, shutdown: CancellationToken) {
    let connections = Connections {
        router,
        limits,
        shutdown: shutdown.clone(),
        end: CancellationToken::new(),
        tasks: TaskTracker::new(),
        places: Arc::new(Semaphore::new(limits.connections_max)),
        refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
    };
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((socket, _)) => connections.admit(socket),
            Err(error) if is_of_one_connection(&error) => tracing::debug!(%error, "a connection was gone before it was accepted"),
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted at the moment");
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.drain().await;
}

struct Connections {
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
    /// Ends what a shutdown has no more time for.
    end: CancellationToken,
    tasks: TaskTracker,
    places: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
}

impl Connections {
    fn admit(&self, socket: TcpStream) {
        // Answers are written whole; waiting for more to send would only delay them.
        let _ = socket.set_nodelay(true);
        match self.places.clone().try_acquire_owned() {
            Ok(place) => {
                let serving = connection::serve(socket, self.router.clone(), self.limits, self.shutdown.clone());
                let end = Signal::of(self.end.clone());
                self.tasks.spawn(async move {
                    ::metrics::gauge!("timer_http_connections").increment(1.0);
                    end.cut_off(serving).await;
                    ::metrics::gauge!("timer_http_connections").decrement(1.0);
                    drop(place);
                });
            }
            Err(_) => {
                ::metrics::counter!("timer_http_connections_refused_total").increment(1);
                if let Ok(permit) = self.refusals.clone().try_acquire_owned() {
                    // Nothing was read that could say which door was meant.
                    let fault = Fault { door: Door::Native, error: ApiError::TooManyConnections };
                    let refusing = refusal::send(socket, self.router.clone(), fault);
                    let end = Signal::of(self.end.clone());
                    self.tasks.spawn(async move {
                        end.cut_off(refusing).await;
                        drop(permit);
                    });
                }
            }
        }
    }

    async fn drain(self) {
        self.tasks.close();
        if time::timeout(self.limits.drain_time_max, self.tasks.wait()).await.is_err() {
            tracing::warn!(connections = self.tasks.len(), "requests in flight did not end in time and are cut off");
            self.end.cancel();
            self.tasks.wait().await;
        }
    }
}

/// Whether the error says nothing about the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests;
