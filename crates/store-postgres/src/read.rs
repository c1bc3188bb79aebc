//! Reading timers by their ids, and asking how the server is.

use std::collections::HashMap;

use domain::TimerId;
use sqlx::{PgConnection, postgres::PgRow, types::Uuid};
use store::Unreadable;
use store_sql::{Call, ExistingTimer, Standing, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows::{self, Fields, shard_column},
};

pub(crate) const READ: &str = sql!("sql/read.sql");

/// Timers by their ids.
pub struct Read {
    ids: Vec<Uuid>,
    shards: Vec<i16>,
}

impl Read {
    pub fn new(ids: Vec<TimerId>, shards: u16) -> Self {
        Self {
            shards: ids.iter().map(|id| shard_column(*id, shards)).collect(),
            ids: ids.into_iter().map(TimerId::as_uuid).collect(),
        }
    }
}

impl Call<Connector> for Read {
    type Answer = HashMap<TimerId, Result<ExistingTimer, Unreadable>>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        if self.ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query(READ).bind(&self.ids).bind(&self.shards).fetch_all(session).await.or_not_done()?;
        rows.iter().map(|row| Ok((rows::id(row).or_not_done()?, existing(row)))).collect()
    }
}

fn existing(row: &PgRow) -> Result<ExistingTimer, Unreadable> {
    let read = || {
        let fields = Fields(row);
        let timer = store_sql::timer(rows::id(row).or_not_done()?, &fields, Standing::of_row(&fields)?)?;
        Ok(ExistingTimer { timer, fingerprint: rows::fingerprint(row)? })
    };
    read().map_err(|failure: Failure| match failure.error {
        store::StoreError::Corrupt(cause) => Unreadable(cause.to_string()),
        other => Unreadable(other.to_string()),
    })
}

/// Takes space on the server's disk for a moment. A role that may not create temporary tables writes a small row instead.
pub struct Probe;

const PROBE: &str = sql!("sql/probe.sql");
const PROBE_WITHOUT_TEMPORARY_TABLES: &str = sql!("sql/probe_without_temporary_tables.sql");

const INSUFFICIENT_PRIVILEGE: &str = "42501";

impl Call<Connector> for Probe {
    type Answer = ();
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        let mut probed = sqlx::raw_sql(PROBE).execute(&mut *session).await;
        let code = |error: &sqlx::Error| error.as_database_error()?.code().map(std::borrow::Cow::into_owned);
        if probed.as_ref().err().and_then(code).is_some_and(|code| code == INSUFFICIENT_PRIVILEGE) {
            probed = sqlx::raw_sql(PROBE_WITHOUT_TEMPORARY_TABLES).execute(session).await;
        }
        probed.or_not_done()?;
        Ok(())
    }
}

/// Asks whether the server answers.
pub struct Ping;

impl Call<Connector> for Ping {
    type Answer = ();
    const WRITES: bool = false;

    async fn run(&self, session: &mut PgConnection) -> Result<(), Failure> {
        sqlx::query("SELECT 1").execute(session).await.or_not_done()?;
        Ok(())
    }
}
