//! The first look at a cluster: can it be reached, and does it keep what it is given.

use std::{sync::Arc, time::Duration};

use domain::Cause;
use scylla::{
    client::{execution_profile::ExecutionProfile, session::Session, session_builder::SessionBuilder},
    errors::{DbError, ExecutionError, RequestAttemptError},
    policies::{
        load_balancing::DefaultPolicy, speculative_execution::SimpleSpeculativeExecutionPolicy,
        timestamp_generator::MonotonicTimestampGenerator,
    },
    serialize::row::SerializeRow,
};
use tokio::time::timeout;

use crate::CassandraOptions;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const NODE_TIMEOUT: Duration = Duration::from_secs(3);
/// Longer than Cassandra itself waits for its replicas.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(6);
/// The interval of keepalive requests on a connection, and the time without an answer to one after which it is given up.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// The time after which a read is sent to another node as well.
const SLOW_READ: Duration = Duration::from_millis(500);

/// Why a cluster cannot be used, with the error that it came from. Never shows a password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("Cassandra cannot be reached: {0}")]
    Unreachable(#[source] Cause),
    #[error("Cassandra is not ready: {0}")]
    NotReady(#[source] Cause),
    #[error("the certificates for connections to Cassandra cannot be used: {0}")]
    Certificates(#[source] Cause),
    #[error("the keyspace could not be set up: {0}")]
    SetUp(#[source] Cause),
}

impl OpenError {
    /// What a statement that sets the keyspace up failed with: it is refused, or may be tried again.
    pub(crate) fn of_set_up(error: ExecutionError) -> Self {
        use DbError::{AlreadyExists, ConfigError, Invalid, ProtocolError, SyntaxError, Unauthorized};
        match &error {
            ExecutionError::LastAttemptError(RequestAttemptError::DbError(
                AlreadyExists { .. } | ConfigError | Invalid | ProtocolError | SyntaxError | Unauthorized,
                _,
            )) => Self::SetUp(Cause::of(error)),
            _ => Self::NotReady(Cause::of(error)),
        }
    }
}

/// What stands between an acknowledged timer and a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Durability {
    /// Settings that let the cluster forget what it has acknowledged, as `name=value`.
    pub weak_settings: Vec<String>,
}

impl Durability {
    pub const fn is_full(&self) -> bool {
        self.weak_settings.is_empty()
    }

    /// With three copies and more, a machine that fails has two others which know what it forgot. With fewer, each must have written
    /// what it acknowledges to its disk.
    fn of(copies: Option<u32>, is_logged: bool, sync: Option<&str>) -> Self {
        let mut weak_settings = Vec::new();
        if copies.is_some_and(|copies| copies < 3) {
            weak_settings.extend(copies.map(|copies| format!("replication_factor={copies}")));
            weak_settings.extend(sync.filter(|sync| *sync == "periodic").map(|sync| format!("commitlog_sync={sync}")));
        }
        if !is_logged {
            weak_settings.push("durable_writes=false".to_owned());
        }
        Self { weak_settings }
    }
}

pub async fn connect(options: &CassandraOptions) -> Result<Session, OpenError> {
    let mut policy = DefaultPolicy::builder().token_aware(true);
    if let Some(datacenter) = &options.datacenter {
        // Never another one: reads and writes are right within one datacenter only.
        policy = policy.prefer_datacenter(datacenter.clone()).permit_dc_failover(false);
    }
    let profile = ExecutionProfile::builder()
        .load_balancing_policy(policy.build())
        .request_timeout(Some(REQUEST_TIMEOUT))
        .speculative_execution_policy(Some(Arc::new(SimpleSpeculativeExecutionPolicy {
            max_retry_count: 1,
            retry_interval: SLOW_READ,
        })))
        .build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&options.contact_points)
        .default_execution_profile_handle(profile.into_handle())
        // Of two writes without condition by this process the later one wins, whichever nodes take them.
        .timestamp_generator(Arc::new(MonotonicTimestampGenerator::new()))
        .connection_timeout(NODE_TIMEOUT)
        .keepalive_interval(SILENCE_MAX)
        .keepalive_timeout(SILENCE_MAX)
        .fetch_full_schema_metadata(false);
    if let Some((user, password)) = &options.credentials {
        builder = builder.user(user, password);
    }
    if let Some(tls) = &options.tls {
        let config = tls.config().map_err(OpenError::Certificates)?;
        builder = builder.tls_context(Some(Arc::new(config)));
    }
    match timeout(CONNECT_TIMEOUT, builder.build()).await {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(error)) => Err(OpenError::Unreachable(Cause::of(error))),
        Err(_) => Err(OpenError::Unreachable("it does not answer".into())),
    }
}

/// Reads what the cluster says of its durability, and warns of what is weak.
pub async fn durability(session: &Session, keyspace: &str) -> Result<Durability, OpenError> {
    let kept = "SELECT durable_writes, replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let kept: Option<(bool, Vec<(String, String)>)> = first(session, kept, (keyspace,)).await.map_err(OpenError::of_set_up)?.map(
        |(is_logged, replication): (bool, std::collections::BTreeMap<String, String>)| {
            (is_logged, replication.into_iter().collect())
        },
    );
    let (is_logged, replication) = kept.unwrap_or((true, Vec::new()));
    // The class of the strategy is no number.
    let copies = replication.iter().filter_map(|(_, factor)| factor.parse::<u32>().ok()).min();
    // A table of the node that answers; a user may lack the right to read it.
    let sync = "SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'";
    let sync: Option<(String,)> = first(session, sync, ()).await.unwrap_or_default();
    let durability = Durability::of(copies, is_logged, sync.as_ref().map(|(sync,)| sync.as_str()));
    for setting in &durability.weak_settings {
        tracing::warn!(cassandra.setting = setting, "acknowledged timers may be lost when a machine fails: keep three copies");
    }
    Ok(durability)
}

async fn first<T>(session: &Session, query: &str, values: impl SerializeRow) -> Result<Option<T>, ExecutionError>
where
    T: for<'frame, 'metadata> scylla::deserialize::row::DeserializeRow<'frame, 'metadata>,
{
    let answer = session.query_unpaged(query, values).await?;
    Ok(answer.into_rows_result().ok().and_then(|rows| rows.maybe_first_row::<T>().ok().flatten()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_forget_are_named() {
        let weak = |copies, is_logged, sync| Durability::of(copies, is_logged, sync).weak_settings;
        assert!(weak(Some(3), true, Some("periodic")).is_empty());
        assert_eq!(weak(Some(1), true, Some("group")), ["replication_factor=1"]);
        assert_eq!(weak(Some(1), true, Some("periodic")), ["replication_factor=1", "commitlog_sync=periodic"]);
        assert_eq!(weak(Some(3), false, None), ["durable_writes=false"]);
    }
}
