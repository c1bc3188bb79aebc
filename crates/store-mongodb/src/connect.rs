//! The first look at a database: can it be reached, is it fit, and does it keep what it is given.

use std::time::Duration;

use domain::Cause;
use mongodb::{
    Client,
    bson::{Bson, Document, RawDocumentBuf, doc, rawdoc},
    error::{Error, ErrorKind},
    event::{
        EventHandler,
        cmap::{CmapEvent, ConnectionClosedEvent, ConnectionClosedReason},
    },
    options::{Acknowledgment, ClientOptions, WriteConcern},
};

use crate::{Address, DEADLINE, MongodbDatabase, deadline, failure::cause};

/// Unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const CONNECTIONS_MAX: u32 = 32;
/// That of MongoDB 8.0, the first one that tells of each operation of a command how it ended.
const WIRE_VERSION_MIN: i32 = 25;

/// Why a database cannot be used, with the error that it came from. Never shows a password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the address of the MongoDB database is wrong: {0}")]
    Address(String),
    #[error("MongoDB cannot be reached: {0}")]
    Unreachable(#[source] Cause),
    #[error("the MongoDB database cannot be used: {0}")]
    Unfit(#[source] Cause),
}

/// What kind of server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployment {
    Standalone,
    /// A replica set, or a sharded cluster, each shard of which is one.
    Replicated,
}

/// What stands between an acknowledged timer and the loss of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Durability {
    acknowledgment: Bson,
    is_journaled: bool,
    /// What lets MongoDB forget what it has acknowledged, in a few words each.
    pub weak_settings: Vec<String>,
}

impl Durability {
    pub const fn is_full(&self) -> bool {
        self.weak_settings.is_empty()
    }

    fn of(deployment: Deployment, asked: Option<&WriteConcern>) -> Self {
        let is_journaled = asked.and_then(|concern| concern.journal).unwrap_or(true);
        let mut weak = Vec::new();
        let acknowledgment = match (deployment, asked.and_then(|concern| concern.w.as_ref())) {
            (Deployment::Standalone, _) => {
                weak.push("a standalone server".to_owned());
                // With a majority of itself it would answer before its journal is written.
                Bson::Int32(1)
            }
            (Deployment::Replicated, None | Some(Acknowledgment::Majority)) => Bson::String("majority".to_owned()),
            (Deployment::Replicated, Some(Acknowledgment::Nodes(nodes))) => {
                weak.push(format!("w={nodes}"));
                Bson::Int32(i32::try_from(*nodes).unwrap_or(i32::MAX))
            }
            (Deployment::Replicated, Some(other)) => {
                let name = if let Acknowledgment::Custom(name) = other { name.as_str() } else { "majority" };
                weak.push(format!("w={name}"));
                Bson::String(name.to_owned())
            }
        };
        if !is_journaled {
            weak.push("journal=false".to_owned());
        }
        Self { acknowledgment, is_journaled, weak_settings: weak }
    }

    /// As commands name it.
    pub(crate) fn write_concern(&self) -> Document {
        let limit = i64::try_from(DEADLINE.as_millis()).unwrap_or(i64::MAX);
        doc! { "w": self.acknowledgment.clone(), "j": self.is_journaled, "wtimeout": limit }
    }

    pub(crate) fn raw_write_concern(&self) -> RawDocumentBuf {
        RawDocumentBuf::try_from(&self.write_concern()).unwrap_or_else(|_| rawdoc! { "w": "majority", "j": true })
    }
}

impl MongodbDatabase {
    /// Connects, and finds out what the server is. Nothing is written.
    pub async fn connect(address: &Address) -> Result<Self, OpenError> {
        let mut options = ClientOptions::parse(address.connection.clone()).await.map_err(not_connected)?;
        options.app_name.get_or_insert_with(|| "timer".to_owned());
        options.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
        options.server_selection_timeout.get_or_insert(CONNECT_TIMEOUT);
        options.max_pool_size.get_or_insert(CONNECTIONS_MAX);
        options.cmap_event_handler = Some(EventHandler::callback(count_broken));
        let client = Client::with_options(options).map_err(not_connected)?;
        let admin = client.database("admin");
        let hello = deadline::within(DEADLINE, admin.run_command(doc! { "hello": 1 })).await.map_err(not_connected)?;
        let deployment = fit(&hello)?;
        let durability = Durability::of(deployment, address.connection.write_concern.as_ref());
        for setting in &durability.weak_settings {
            tracing::warn!(
                mongodb.setting = setting,
                "acknowledged timers may be lost with a server: use a replica set, with w=majority"
            );
        }
        Ok(Self::new(client.database(&address.database), deployment, durability))
    }
}

/// Counts connections that ended otherwise than by being idle.
fn count_broken(event: CmapEvent) {
    use ConnectionClosedReason::{Dropped, Error, Stale};
    if let CmapEvent::ConnectionClosed(ConnectionClosedEvent { reason: Dropped | Error | Stale, .. }) = event {
        metrics::counter!("timer_mongodb_connections_broken_total").increment(1);
    }
}

/// What the server says of itself.
fn fit(hello: &Document) -> Result<Deployment, OpenError> {
    if hello.get_i32("maxWireVersion").unwrap_or_default() < WIRE_VERSION_MIN {
        return Err(OpenError::Unfit("it is older than MongoDB 8.0, which is the oldest that will do".into()));
    }
    let is_router = hello.get_str("msg").is_ok_and(|message| message == "isdbgrid");
    Ok(if is_router || hello.contains_key("setName") { Deployment::Replicated } else { Deployment::Standalone })
}

fn not_connected(error: Error) -> OpenError {
    match error.kind.as_ref() {
        ErrorKind::InvalidArgument { message, .. } | ErrorKind::InvalidTlsConfig { message, .. } => {
            OpenError::Address(message.clone())
        }
        ErrorKind::Authentication { .. } | ErrorKind::Command(_) | ErrorKind::IncompatibleServer { .. } => {
            OpenError::Unfit(cause(error))
        }
        _ => OpenError::Unreachable(cause(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concern(w: Acknowledgment, journal: Option<bool>) -> WriteConcern {
        let mut concern = WriteConcern::default();
        (concern.w, concern.journal) = (Some(w), journal);
        concern
    }

    #[test]
    fn what_forgets_is_named() {
        use Deployment::{Replicated, Standalone};
        for (deployment, asked, weak) in [
            (Replicated, None, vec![]),
            (Replicated, Some(concern(Acknowledgment::Majority, Some(true))), vec![]),
            (Replicated, Some(concern(Acknowledgment::Nodes(1), None)), vec!["w=1"]),
            (Replicated, Some(concern(Acknowledgment::Custom("near".into()), Some(false))), vec!["w=near", "journal=false"]),
            (Standalone, Some(concern(Acknowledgment::Majority, None)), vec!["a standalone server"]),
        ] {
            assert_eq!(Durability::of(deployment, asked.as_ref()).weak_settings, weak, "{asked:?}");
        }
    }

    #[test]
    fn a_standalone_server_waits_for_its_journal_and_not_for_a_majority() {
        let durability = Durability::of(Deployment::Standalone, None);
        assert_eq!(durability.write_concern(), doc! { "w": 1, "j": true, "wtimeout": 5_000_i64 });
        assert_eq!(Durability::of(Deployment::Replicated, None).write_concern().get_str("w").ok(), Some("majority"));
    }

    #[test]
    fn servers_are_told_apart_and_old_ones_refused() {
        let deployment = |hello: Document| fit(&hello).ok();
        assert_eq!(deployment(doc! { "maxWireVersion": 25, "setName": "rs0" }), Some(Deployment::Replicated));
        assert_eq!(deployment(doc! { "maxWireVersion": 26, "msg": "isdbgrid" }), Some(Deployment::Replicated));
        assert_eq!(deployment(doc! { "maxWireVersion": 29 }), Some(Deployment::Standalone));
        assert_eq!(deployment(doc! { "maxWireVersion": 21, "setName": "rs0" }), None);
    }
}
