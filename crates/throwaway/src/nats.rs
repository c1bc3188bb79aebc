//! One nats-server, or several in a cluster, in temporary directories.

mod cluster;
mod monitor;
mod program;
mod server;
mod settings;

use std::path::Path;

use serde_json::Value;

use server::{Ports, Server};

pub use cluster::NatsCluster;
pub use settings::{NatsBuilder, NatsUser};

const LAUNCH_ATTEMPTS_MAX: u32 = 5;
const PORTS_LOST: &str = "nats-server found every port taken that was free a moment before";
const PORT_LOST: &str = "another process has taken a port of the stopped nats-server";

impl NatsBuilder {
    /// Starts the server; returns once it takes connections and its JetStream answers.
    pub fn start(self) -> Nats {
        Nats::start_as(&self)
    }
}

/// A server of its own, from `Nats::start()` to `drop`.
#[derive(Debug)]
pub struct Nats {
    server: Server,
    scheme: &'static str,
}

impl Nats {
    /// Starts a server with JetStream and without authentication; returns once it takes connections and JetStream answers.
    pub fn start() -> Self {
        Self::builder().start()
    }

    pub fn builder() -> NatsBuilder {
        NatsBuilder::new()
    }

    fn start_as(settings: &NatsBuilder) -> Self {
        // Another process can take a port between finding it and listening on it; then another port will do.
        let server = (0..LAUNCH_ATTEMPTS_MAX).find_map(|_| {
            let ports = Ports::free();
            let server = Server::set_up(ports, |home| settings.configuration(&ports.server_name(), &ports, home));
            server.start().then_some(server)
        });
        let nats = Self { server: server.expect(PORTS_LOST), scheme: settings.scheme() };
        nats.await_health();
        nats
    }

    /// The URL for clients, without credentials: `nats://127.0.0.1:4222`, or `tls://…` when the server requires TLS.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port())
    }

    pub fn port(&self) -> u16 {
        self.server.ports().client
    }

    /// Kills the server: connections break, nothing is written any more. No effect on a stopped server.
    pub fn stop_immediate(&self) {
        self.server.stop_immediate();
    }

    /// Starts a stopped server again, on the same port and with the same data. No effect on a running server.
    pub fn start_again(&self) {
        if !self.server.is_started() {
            assert!(self.server.start(), "{PORT_LOST}");
            self.await_health();
        }
    }

    /// Suspends the process: its connections stay open, and nothing answers on them. It can be killed all the same.
    pub fn pause(&self) {
        self.server.pause();
    }

    /// Lets a paused server go on as if nothing had happened.
    pub fn resume(&self) {
        self.server.resume();
    }

    /// The answer of the monitoring port under `path`, for example `/connz` or `/subsz`. `None` when it does not answer.
    pub fn monitor(&self, path: &str) -> Option<Value> {
        self.server.monitor(path)
    }

    /// What the server has logged since its first start.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// The directory that belongs to this server.
    pub fn home(&self) -> &Path {
        self.server.home()
    }

    fn await_health(&self) {
        self.server.poll("is not healthy a minute after its start", || self.server.is_healthy().then_some(()));
    }
}
