//! The statements that register timers. [`store_sql::Creates`] says in which order.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use domain::{NewTimer, TimerId};
use sqlx::{AssertSqlSafe, types::Uuid};
use store::{Created, StoreResult, Unreadable};
use store_sql::{Call, Inserted, Inserts, Met, sql};

use crate::{
    conflict::Resolve,
    failure::{Failure, Step, Verdict},
    journal::Entries,
    read::Read,
    rows::{DefinitionColumns, Hex},
    session::Session,
    sessions::{Bulkhead, Sessions},
    transaction::Transaction,
};

pub(crate) const INSERT_DEFINITION: &str = sql!("sql/insert_definition.sql");
pub(crate) const INSERT_DUE: &str = sql!("sql/insert_due.sql");
pub(crate) const TAKEN: &str = sql!("sql/taken.sql");

/// The most rows of one statement. Batches are cut into powers of two up to this, so that few different texts are prepared.
const ROWS_MAX: usize = 256;

pub type Creates = store_sql::Creates<Statements>;

/// What timers are registered with.
#[derive(Debug)]
pub struct Statements {
    pub bulkhead: Bulkhead,
    pub shards: Arc<AtomicU16>,
}

impl Statements {
    fn shards(&self) -> u16 {
        self.shards.load(Ordering::Relaxed)
    }
}

impl Inserts for Statements {
    const BATCH_TIMERS: &'static str = "timer_mysql_create_batch_timers";

    /// An id that no client chose is free, so most batches need not ask. Where that turns out to be wrong, nothing was written.
    async fn insert(&self, timers: &[Arc<NewTimer>]) -> Result<Inserted, Failure> {
        let mut insert = Insert::new(timers, self.shards());
        if !insert.asks_first {
            let again = insert.clone();
            match self.bulkhead.attempt(insert).await {
                Err(failure) if failure.verdict == Verdict::Duplicate => insert = Insert { asks_first: true, ..again },
                answer => return answer,
            }
        }
        self.bulkhead.attempt(insert).await
    }

    async fn read(&self, ids: Vec<TimerId>) -> StoreResult<HashMap<TimerId, Result<Met, Unreadable>>> {
        self.bulkhead.run(Read(ids)).await
    }

    async fn resolve(&self, new: Arc<NewTimer>) -> StoreResult<Option<Created>> {
        self.bulkhead.run(Resolve::new(new, self.shards())).await
    }
}

#[derive(Clone)]
struct Insert {
    timers: Arc<Vec<(Arc<NewTimer>, DefinitionColumns)>>,
    asks_first: bool,
}

type Row<'a> = &'a (Arc<NewTimer>, DefinitionColumns);

impl Insert {
    fn new(timers: &[Arc<NewTimer>], shards: u16) -> Self {
        let columns = |new: &Arc<NewTimer>| {
            let NewTimer { definition, execute_at, .. } = &**new;
            (Arc::clone(new), DefinitionColumns::of(definition, *execute_at, definition.fingerprint(), shards))
        };
        Self {
            timers: Arc::new(timers.iter().map(columns).collect()),
            // A client that names a timer by a key may well do so again.
            asks_first: timers.iter().any(|new| new.definition.key.is_some()),
        }
    }

    /// Those whose ids no timer has.
    async fn free(&self, session: &mut Session) -> Result<Vec<Row<'_>>, Failure> {
        let ids: Vec<Hex> = self.timers.iter().map(|(_, columns)| Hex(columns.id)).collect();
        let taken =
            sqlx::query_scalar::<_, Uuid>(TAKEN).bind(session.given(&ids).await?).fetch_all(session).await.or_not_done()?;
        let taken: HashSet<Uuid> = taken.into_iter().collect();
        Ok(self.timers.iter().filter(|(_, columns)| !taken.contains(&columns.id)).collect())
    }
}

impl Call<Sessions> for Insert {
    type Answer = Inserted;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Inserted, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        let timers = if self.asks_first { self.free(transaction.session()).await? } else { self.timers.iter().collect() };
        if timers.is_empty() {
            // Nothing was written: this only ends the transaction.
            transaction.commit().await?;
            return Ok(Inserted::Only(HashSet::new()));
        }
        // Definitions first, so that a taken id is noticed there: its row in `due` may be held by a session that changes it, and would be
        // waited for.
        for rows in portions(&timers) {
            insert_definitions(transaction.session(), rows).await.map_err(|failure| self.taken_meanwhile(failure))?;
        }
        for rows in portions(&timers) {
            insert_due(transaction.session(), rows).await?;
        }
        let mut entries = Entries::default();
        for (new, _) in &timers {
            entries.created(&transaction, new.definition.id, new.created_at);
        }
        entries.write(&mut transaction)?;
        transaction.commit().await?;
        if !self.asks_first {
            return Ok(Inserted::All);
        }
        Ok(Inserted::Only(timers.iter().map(|(new, _)| new.definition.id).collect()))
    }
}

impl Insert {
    /// Another session has taken an id that was free a moment ago: the next look finds it.
    fn taken_meanwhile(&self, failure: Failure) -> Failure {
        if self.asks_first && failure.verdict == Verdict::Duplicate {
            return Failure::contention("another session has registered one of these timers");
        }
        failure
    }
}

async fn insert_definitions(session: &mut Session, rows: &[Row<'_>]) -> Result<(), Failure> {
    let mut query = sqlx::query(AssertSqlSafe(repeated(INSERT_DEFINITION, rows.len())));
    for (new, columns) in rows {
        let created_at = new.created_at.as_micros();
        query = query
            .bind(columns.id)
            .bind(columns.shard)
            .bind(columns.asked)
            .bind(columns.execute_at)
            .bind(created_at)
            .bind(created_at)
            .bind(columns.fingerprint.as_slice())
            .bind(&columns.namespace)
            .bind(&columns.key)
            .bind(&columns.group)
            .bind(&columns.correlation_id)
            .bind(columns.callback_type)
            .bind(columns.delivery)
            .bind(&columns.retry_policy)
            .bind(&columns.metadata)
            .bind(&columns.callback_config)
            .bind(&columns.options);
    }
    query.execute(session).await.or_not_done()?;
    Ok(())
}

async fn insert_due(session: &mut Session, rows: &[Row<'_>]) -> Result<(), Failure> {
    let mut query = sqlx::query(AssertSqlSafe(repeated(INSERT_DUE, rows.len())));
    for (_, columns) in rows {
        query = query.bind(columns.shard).bind(columns.execute_at).bind(columns.id).bind(columns.destination);
    }
    query.execute(session).await.or_not_done()?;
    Ok(())
}

/// The statement with its row of values so many times.
fn repeated(statement: &str, rows: usize) -> String {
    let values = statement.rsplit_once("VALUES ").map_or("", |(_, values)| values);
    let mut text = String::with_capacity(statement.len() + (values.len() + 2) * rows);
    text.push_str(statement);
    for _ in 1..rows {
        text.push_str(", ");
        text.push_str(values);
    }
    text
}

/// Rows in portions of powers of two, the largest first.
fn portions<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let length = if rows.len() >= ROWS_MAX { ROWS_MAX } else { rows.len().checked_ilog2().map(|power| 1 << power)? };
        let (portion, rest) = rows.split_at(length);
        rows = rest;
        Some(portion)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lengths_of_batches_are_prepared() {
        let lengths = |count: usize| portions(&vec![(); count]).map(<[_]>::len).collect::<Vec<_>>();
        assert!(lengths(0).is_empty());
        assert_eq!(lengths(1), [1]);
        assert_eq!(lengths(7), [4, 2, 1]);
        assert_eq!(lengths(600), [256, 256, 64, 16, 8]);
    }

    #[test]
    fn a_row_of_values_is_repeated() {
        assert_eq!(repeated("INSERT INTO t (a, b) VALUES (?, 0)", 3), "INSERT INTO t (a, b) VALUES (?, 0), (?, 0), (?, 0)");
        assert_eq!(repeated(INSERT_DUE, 1), INSERT_DUE);
    }
}
