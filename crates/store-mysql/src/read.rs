//! Reading timers by their ids, and asking how the server is.

use std::collections::HashMap;

use domain::TimerId;
use sqlx::mysql::MySqlRow;
use store::Unreadable;
use store_sql::{Call, ExistingTimer, Standing, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows::{self, Fields, Hex},
    session::Session,
    transaction::{Holds, Transaction},
};

pub(crate) const READ: &str = sql!("sql/read.sql");

/// Timers by their ids.
pub struct Read(pub Vec<TimerId>);

impl Call<Connector> for Read {
    type Answer = HashMap<TimerId, Result<ExistingTimer, Unreadable>>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Self::Answer, Failure> {
        if self.0.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<Hex> = self.0.iter().copied().map(Hex::from).collect();
        let rows = sqlx::query(READ).bind(session.given(&ids).await?).fetch_all(session).await.or_not_done()?;
        rows.iter().map(|row| Ok((rows::id(row).or_not_done()?, existing(row)))).collect()
    }
}

fn existing(row: &MySqlRow) -> Result<ExistingTimer, Unreadable> {
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

/// Takes space on the server's disk for a moment.
pub struct Probe;

const PROBE: &str = sql!("sql/probe.sql");

impl Call<Connector> for Probe {
    type Answer = ();
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<(), Failure> {
        let mut transaction = Transaction::begin(session, Holds::default()).await?;
        sqlx::raw_sql(PROBE).execute(transaction.session()).await.or_not_done()?;
        transaction.rollback().await
    }
}

/// Asks whether the server answers.
pub struct Ping;

impl Call<Connector> for Ping {
    type Answer = ();
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<(), Failure> {
        sqlx::query("SELECT 1").execute(session).await.or_not_done()?;
        Ok(())
    }
}
