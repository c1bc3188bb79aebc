//! Who works on a shard. One file has one process, but the promises are those of every store.

use domain::{Shard, Span, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use store::{Epoch, NodeId, Tenure};

use crate::{failure::Failure, writer::Write};

pub const EPOCH: &str = "SELECT epoch FROM shard WHERE shard = ?1";
const ACQUIRE: &str = "UPDATE shard SET epoch = epoch + (owner IS NOT ?2), owner = ?2, lease_until = ?3 \
     WHERE shard = ?1 AND (owner IS NULL OR owner = ?2 OR lease_until <= ?4) RETURNING epoch";
const RENEW: &str = "UPDATE shard SET lease_until = ?4 WHERE shard = ?1 AND epoch = ?2 AND owner = ?3";
const RELEASE: &str = "UPDATE shard SET owner = NULL, lease_until = 0 WHERE shard = ?1 AND epoch = ?2 AND owner = ?3";

/// Whether nobody has taken the shard since.
pub fn is_current(connection: &Connection, tenure: Tenure) -> Result<bool, Failure> {
    let epoch: Option<i64> = connection.prepare_cached(EPOCH)?.query_row([tenure.shard.0], |row| row.get(0)).optional()?;
    Ok(epoch == Some(tenure.epoch.0))
}

/// A sign of life: the smallest read there is that needs the file.
pub fn look(connection: &Connection) -> Result<(), Failure> {
    Ok(connection.prepare_cached(EPOCH)?.query_row([0], |_| Ok(()))?)
}

pub struct Acquire {
    pub node: NodeId,
    pub shards: Vec<Shard>,
    pub now: Timestamp,
    pub lease: Span,
}

impl Write for Acquire {
    type Answer = Vec<Tenure>;
    const NAME: &'static str = "acquire";

    fn rows(&self) -> usize {
        self.shards.len()
    }

    fn run(&self, connection: &Connection) -> Result<Vec<Tenure>, Failure> {
        let mut acquire = connection.prepare_cached(ACQUIRE)?;
        let mut tenures = Vec::new();
        let lease_until = self.now.saturating_add(self.lease).as_micros();
        for shard in &self.shards {
            let epoch = acquire
                .query_row(params![shard.0, self.node.0.to_be_bytes(), lease_until, self.now.as_micros()], |row| row.get(0))
                .optional()?;
            tenures.extend(epoch.map(|epoch| Tenure { shard: *shard, epoch: Epoch(epoch) }));
        }
        Ok(tenures)
    }
}

pub struct Renew {
    pub node: NodeId,
    pub tenures: Vec<Tenure>,
    pub now: Timestamp,
    pub lease: Span,
}

impl Write for Renew {
    type Answer = Vec<Tenure>;
    const NAME: &'static str = "renew";

    fn rows(&self) -> usize {
        self.tenures.len()
    }

    fn run(&self, connection: &Connection) -> Result<Vec<Tenure>, Failure> {
        let mut renew = connection.prepare_cached(RENEW)?;
        let mut standing = Vec::new();
        let lease_until = self.now.saturating_add(self.lease).as_micros();
        for tenure in &self.tenures {
            if renew.execute(params![tenure.shard.0, tenure.epoch.0, self.node.0.to_be_bytes(), lease_until])? == 1 {
                standing.push(*tenure);
            }
        }
        Ok(standing)
    }
}

pub struct Release {
    pub node: NodeId,
    pub tenures: Vec<Tenure>,
}

impl Write for Release {
    type Answer = ();
    const NAME: &'static str = "release";

    fn rows(&self) -> usize {
        self.tenures.len()
    }

    fn run(&self, connection: &Connection) -> Result<(), Failure> {
        let mut release = connection.prepare_cached(RELEASE)?;
        for tenure in &self.tenures {
            release.execute(params![tenure.shard.0, tenure.epoch.0, self.node.0.to_be_bytes()])?;
        }
        Ok(())
    }
}
