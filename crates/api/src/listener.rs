//! Puts the API on a socket. Axum's own `serve` sets no time limits and leaves strictness to the parser; here a client gets
//! only so much time for each part of a request, and a head that two readers could read differently is refused. Hyper alone does
//! neither: see ADR 12.

mod admission;
mod connection;
mod head;
mod refusal;
mod signal;
mod strict_reader;

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::{TcpListener, TcpStream},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[cfg(fuzzing)]
pub use self::head::checks::check as check_head;
use self::{admission::Admission, signal::Signal};
use crate::{BasePath, Limits};

/// How long accepting rests after it failed, for want of file descriptors say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `router`, which is under `base_path`, on `listener` until `shutdown`; then takes no more connections and finishes the requests
/// in flight.
pub async fn serve(listener: TcpListener, router: Router, base_path: BasePath, limits: Limits, shutdown: CancellationToken) {
    let connections = Connections {
        router,
        base_path,
        limits,
        shutdown: shutdown.clone(),
        end: CancellationToken::new(),
        tasks: TaskTracker::new(),
        admission: Admission::new(limits.connections_max, limits.connections_per_address_max),
    };
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((socket, peer)) => connections.admit(socket, peer.ip()),
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
    base_path: BasePath,
    limits: Limits,
    shutdown: CancellationToken,
    /// Ends what a shutdown has no more time for.
    end: CancellationToken,
    tasks: TaskTracker,
    admission: Arc<Admission>,
}

impl Connections {
    fn admit(&self, socket: TcpStream, address: IpAddr) {
        // Answers are written whole; waiting for more to send would only delay them.
        let _ = socket.set_nodelay(true);
        let Some(admitted) = self.admission.admit(address) else {
            return count_refused();
        };
        let routes = connection::Routed { router: self.router.clone(), base_path: self.base_path.clone() };
        let serving = connection::serve(socket, address, routes, self.limits, admitted, self.shutdown.clone());
        let end = Signal::of(self.end.clone());
        self.tasks.spawn(async move {
            ::metrics::gauge!("timer_http_connections").increment(1.0);
            end.cut_off(serving).await;
            ::metrics::gauge!("timer_http_connections").decrement(1.0);
        });
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

/// Counts a connection that is not served. One of the reserve is, if it asks for what the reserve is for.
fn count_refused() {
    ::metrics::counter!("timer_http_connections_refused_total").increment(1);
}

/// Whether the error says nothing about the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod hyper_alone;
#[cfg(test)]
mod tests;
