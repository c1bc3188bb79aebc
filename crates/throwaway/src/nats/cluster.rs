//! Several servers that replicate streams.

use serde_json::{Value, json};

use super::server::{Ports, Server};
use super::settings::NatsBuilder;
use super::{LAUNCH_ATTEMPTS_MAX, PORT_LOST, PORTS_LOST};

/// Servers on loopback that form one JetStream cluster, numbered from 0: `NatsCluster::start(3)` to `drop`.
#[derive(Debug)]
pub struct NatsCluster {
    servers: Vec<Server>,
    scheme: &'static str,
}

impl NatsCluster {
    /// Returns once the servers have elected a leader and every one of them can be given a replica of a stream.
    pub fn start(servers: usize) -> Self {
        Self::start_as(&NatsBuilder::new(), servers)
    }

    /// Starts this many servers of this description as one cluster; returns once they have elected a leader.
    pub fn start_as(settings: &NatsBuilder, size: usize) -> Self {
        // When another process takes a port between finding it and listening on it, all servers are set up anew, because they
        // know each other's ports.
        let servers = (0..LAUNCH_ATTEMPTS_MAX).find_map(|_| {
            let servers = set_up(settings, size);
            servers.iter().all(Server::start).then_some(servers)
        });
        let cluster = Self { servers: servers.expect(PORTS_LOST), scheme: settings.scheme() };
        cluster.await_settled();
        cluster
    }

    /// The URLs of all servers, joined by commas.
    pub fn urls(&self) -> String {
        let urls: Vec<String> = (0..self.servers.len()).map(|server| self.url(server)).collect();
        urls.join(",")
    }

    pub fn url(&self, server: usize) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.servers[server].ports().client)
    }

    /// Kills one server. No effect on a stopped one.
    pub fn stop_immediate(&self, server: usize) {
        self.servers[server].stop_immediate();
    }

    /// Starts a stopped server again, on the same port and with the same data. No effect on a running server.
    ///
    /// Returns as soon as the server takes connections; when a majority runs, once it follows an elected leader; and when all
    /// run, once all have caught up with one another.
    pub fn start_again(&self, server: usize) {
        if !self.servers[server].is_started() {
            assert!(self.servers[server].start(), "{PORT_LOST}");
            if self.started().count() > self.servers.len() / 2 {
                self.await_settled();
            }
        }
    }

    /// The server that leads the cluster, which is the one that places streams. `None` during an election.
    pub fn meta_leader(&self) -> Option<usize> {
        self.find_with("/jsz", |jsz, name| jsz["meta_cluster"]["leader"] == name)
    }

    /// The server that leads `stream`. `None` during an election, and when there is no such stream.
    ///
    /// In the first moments after its election a leader may miss a message: publishers have to repeat what was not
    /// acknowledged.
    pub fn stream_leader(&self, stream: &str) -> Option<usize> {
        self.find_with("/jsz?accounts=true&streams=true", |jsz, name| leads(jsz, stream, name))
    }

    /// What this server has logged since its first start.
    pub fn log(&self, server: usize) -> String {
        self.servers[server].log()
    }

    /// The server whose own answer, together with its name, fulfils the condition. Only what a leader says of itself counts:
    /// its followers go on naming it for a while after it is gone.
    fn find_with(&self, path: &str, is_asked_for: impl Fn(&Value, &str) -> bool) -> Option<usize> {
        self.servers.iter().position(|server| {
            server.is_started() && server.monitor(path).is_some_and(|answer| is_asked_for(&answer, &server.ports().server_name()))
        })
    }

    fn await_settled(&self) {
        let Some(any) = self.servers.first() else { return };
        any.poll("and its cluster have not settled a minute after their start", || self.is_settled().then_some(()));
    }

    /// Whether a leader finds all running servers up to date.
    ///
    /// Their own health counts only when none is missing: a stream whose replicas were killed in the middle of a write may need
    /// the last of them to recover.
    fn is_settled(&self) -> bool {
        let Some(leader) = self.meta_leader().map(|leader| &self.servers[leader]) else { return false };
        let followers = leader.monitor("/jsz").map(|mut jsz| jsz["meta_cluster"]["replicas"].take()).unwrap_or_default();
        let leader_name = leader.ports().server_name();
        let mut names = self.started().map(|server| server.ports().server_name());
        names.all(|name| name == leader_name || is_current(&followers, &name))
            && (self.started().count() < self.servers.len() || self.servers.iter().all(Server::is_healthy))
    }

    fn started(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.is_started())
    }
}

fn set_up(settings: &NatsBuilder, size: usize) -> Vec<Server> {
    let all: Vec<Ports> = (0..size).map(|_| Ports::free()).collect();
    let routes: Vec<String> = all.iter().map(|ports| format!("nats://127.0.0.1:{}", ports.route)).collect();
    let set_up_one = |ports: &Ports| {
        Server::set_up(*ports, |home| {
            let mut configuration = settings.configuration(&ports.server_name(), ports, home);
            let cluster = json!({
                // Servers of another test, should they reach one of these ports, are refused by the name of the cluster.
                "name": format!("throwaway-{}-{}", std::process::id(), all[0].route),
                "listen": format!("127.0.0.1:{}", ports.route),
                "routes": routes,
            });
            configuration.insert("cluster".to_owned(), cluster);
            configuration
        })
    };
    all.iter().map(set_up_one).collect()
}

fn leads(jsz: &Value, stream: &str, server: &str) -> bool {
    let accounts = jsz["account_details"].as_array().into_iter().flatten();
    let mut streams = accounts.flat_map(|account| account["stream_detail"].as_array().into_iter().flatten());
    streams.any(|detail| detail["name"] == stream && detail["cluster"]["leader"] == server)
}

fn is_current(followers: &Value, server: &str) -> bool {
    let mut followers = followers.as_array().into_iter().flatten();
    followers.any(|follower| follower["name"] == server && follower["current"] == true && follower["offline"] != true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_led_by_the_server_that_its_account_names() {
        let jsz = json!({ "account_details": [
            { "name": "A" },
            { "name": "$G", "stream_detail": [
                { "name": "ONE", "cluster": { "leader": "a" } },
                { "name": "TWO", "cluster": { "leader": "b" } },
                { "name": "THREE", "cluster": {} },
            ] },
        ] });
        for (stream, server, expected) in
            [("ONE", "a", true), ("TWO", "b", true), ("ONE", "b", false), ("THREE", "a", false), ("FOUR", "a", false)]
        {
            assert_eq!(leads(&jsz, stream, server), expected, "{stream} {server}");
        }
        assert!(!leads(&json!({}), "ONE", "a"));
    }

    #[test]
    fn a_follower_that_lags_or_is_away_is_not_current() {
        let followers = json!([
            { "name": "a", "current": true },
            { "name": "b", "current": false },
            { "name": "c", "current": true, "offline": true },
        ]);
        let current: Vec<&str> = ["a", "b", "c", "d"].into_iter().filter(|name| is_current(&followers, name)).collect();
        assert_eq!(current, ["a"]);
        assert!(!is_current(&Value::Null, "a"));
    }
}
