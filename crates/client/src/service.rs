//! How the service is, and what it did.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Client, Error, Instant, Json, Query, Request, RetryPolicy, duration, wire};

/// The calls about what is due and what was fired.
#[derive(Debug, Clone, Copy)]
pub struct Stats<'a>(pub(crate) &'a Client);

/// A span of time and how finely it is counted; what is left out has the default of the service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatsQuery {
    pub from: Option<Instant>,
    pub to: Option<Instant>,
    pub step: Option<Duration>,
    /// Several are separated by commas.
    pub namespace: Option<String>,
}

/// How many timers are due when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DueStats {
    #[serde(with = "wire::instant")]
    pub from: Instant,
    #[serde(with = "wire::instant")]
    pub to: Instant,
    pub step_seconds: u64,
    pub buckets: Vec<DueBucket>,
    pub pending_is_estimate: bool,
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DueBucket {
    #[serde(with = "wire::instant")]
    pub at: Instant,
    pub pending: u64,
}

/// What was called when, and how late.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FiredStats {
    #[serde(with = "wire::instant")]
    pub from: Instant,
    #[serde(with = "wire::instant")]
    pub to: Instant,
    pub step_seconds: u64,
    pub buckets: Vec<FiredBucket>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FiredBucket {
    #[serde(with = "wire::instant")]
    pub at: Instant,
    #[serde(default)]
    pub created: u64,
    pub fired: u64,
    pub completed: u64,
    pub failed: u64,
    pub retried: u64,
    pub lateness_p50_ms: Option<f64>,
    pub lateness_p99_ms: Option<f64>,
    pub lateness_max_ms: Option<f64>,
}

/// The receivers that were called lately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Destinations {
    pub destinations: Vec<Destination>,
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Destination {
    pub destination: String,
    /// `good`, `slow`, `failing` or `silent`.
    pub health: String,
    pub in_flight: u64,
    pub ok_1m: u64,
    pub failed_1m: u64,
    pub ok_10m: u64,
    pub failed_10m: u64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub failures_in_a_row: u64,
    pub last_error: Option<String>,
    pub pending_retries: u64,
}

/// The namespaces that the key opens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Namespaces {
    pub namespaces: Vec<Namespace>,
    pub pending_is_estimate: bool,
    pub failed_is_estimate: bool,
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Namespace {
    pub name: String,
    pub pending: u64,
    pub failed: u64,
    #[serde(with = "wire::some_instant")]
    pub oldest_overdue: Option<Instant>,
    pub has_retry_policy: bool,
    #[serde(default)]
    pub retry_policy: Option<RetryPolicy>,
    pub has_signing_secret: bool,
    pub has_subjects: bool,
}

/// The nodes that share the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cluster {
    #[serde(with = "wire::instant")]
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub shards: Vec<Shard>,
    pub oldest_overdue_seconds: f64,
    /// The latest first, as far as the answering process has seen them.
    #[serde(default)]
    pub moves: Vec<ShardMove>,
}

/// A shard that a node has acquired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShardMove {
    #[serde(with = "wire::instant")]
    pub at: Instant,
    pub shard: u64,
    pub epoch: u64,
    /// The name of the former owner, if there is one.
    pub from: Option<String>,
    pub to: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Node {
    pub id: String,
    pub name: String,
    pub version: String,
    #[serde(with = "wire::instant")]
    pub started_at: Instant,
    pub alive: bool,
    pub takes_shards: bool,
    pub lease_seconds_left: f64,
    pub clock_skew_seconds: f64,
    pub shards: u64,
    /// Calls under way, as it last wrote it down.
    #[serde(default)]
    pub in_flight: u64,
    /// Calls that it began in the last whole minute, per second.
    #[serde(default)]
    pub fires_per_second: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Shard {
    pub shard: u64,
    /// The fencing token of its lease.
    pub epoch: u64,
    pub owner: Option<String>,
}

/// What the API key of the client opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Caller {
    pub administrator: bool,
    pub id: Option<String>,
    pub name: String,
    /// `read` or `write`.
    pub rights: String,
    /// `None`: all of them.
    pub namespaces: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Health {
    /// `up` or `degraded`.
    pub status: String,
    /// `connected` or `disconnected`.
    pub database: String,
    #[serde(with = "wire::instant")]
    pub timestamp: Instant,
}

impl StatsQuery {
    fn on(&self, path: &str) -> String {
        let Self { from, to, step, namespace } = self;
        let query = Query::new().with_some("from", from.map(wire::text)).with_some("to", to.map(wire::text));
        query.with_some("step", step.map(duration)).with_some("namespace", namespace.clone()).on(path)
    }
}

impl Stats<'_> {
    /// How many timers are due when.
    pub async fn due(&self, query: &StatsQuery) -> Result<DueStats, Error> {
        self.0.read(&query.on("/stats/due")).await?.parse()
    }

    /// What was called when, and how late.
    pub async fn fired(&self, query: &StatsQuery) -> Result<FiredStats, Error> {
        self.0.read(&query.on("/stats/fired")).await?.parse()
    }
}

impl Client {
    /// Whether the service answers at all.
    pub async fn ping(&self) -> Result<(), Error> {
        self.read("/ping").await.map(drop)
    }

    /// How the service is; an error if it is not well.
    pub async fn health(&self) -> Result<Health, Error> {
        self.read("/healthz").await?.parse()
    }

    /// What the API key of this client opens.
    pub async fn whoami(&self) -> Result<Caller, Error> {
        self.read("/whoami").await?.parse()
    }

    /// The nodes that share the work.
    pub async fn cluster(&self) -> Result<Cluster, Error> {
        self.read("/cluster").await?.parse()
    }

    /// How the receivers are: those of a namespace, or all that the key opens.
    pub async fn destinations(&self, namespace: Option<&str>) -> Result<Destinations, Error> {
        self.read(&Query::new().with_some("namespace", namespace).on("/destinations")).await?.parse()
    }

    pub async fn namespaces(&self) -> Result<Namespaces, Error> {
        self.read("/namespaces").await?.parse()
    }

    /// The `data` of any `GET`, exactly as the service sent it.
    pub async fn read(&self, path: &str) -> Result<Json, Error> {
        Ok(self.call(&Request::get(path)).await?.data)
    }
}
