//! The statements that register timers. [`store_sql::Creates`] says in which order.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use domain::{NewTimer, TimerId};
use sqlx::{Row as _, types::Uuid};
use store::{Created, StoreResult, Unreadable};
use store_sql::{Call, ExistingTimer, Inserted, Inserts, sql};

use crate::{
    conflict::{INSERT_DUE, Resolve},
    connector::{Bulkhead, Connector},
    failure::{Failure, Step, Verdict},
    journal::Entries,
    literal::{self, Value},
    read::Read,
    rows::{DefinitionColumns, Hex, json},
    session::Session,
    transaction::{Holds, Transaction},
};

pub(crate) const INSERT_DEFINITION: &str = sql!("sql/insert_definition.sql");
pub(crate) const TAKEN: &str = sql!("sql/taken.sql");

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

    async fn read(&self, ids: Vec<TimerId>) -> StoreResult<HashMap<TimerId, Result<ExistingTimer, Unreadable>>> {
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

    /// Begins a transaction. Answers as well with those whose ids no timer has.
    async fn begin<'s>(&self, session: &'s mut Session) -> Result<(Transaction<'s>, Vec<Row<'_>>), Failure> {
        let holds = Holds { generation: true, shards: Vec::new() };
        if !self.asks_first {
            return Ok((Transaction::begin(session, holds).await?, self.timers.iter().collect()));
        }
        let ids: Vec<Hex> = self.timers.iter().map(|(_, columns)| Hex(columns.id)).collect();
        let taken = literal::placed(TAKEN, [literal::text(&json(&ids)?)]);
        let (transaction, taken) = Transaction::begin_with(session, holds, Some(taken)).await?;
        let taken = taken.iter().map(|row| row.try_get("id")).collect::<Result<HashSet<Uuid>, _>>().or_not_done()?;
        Ok((transaction, self.timers.iter().filter(|(_, columns)| !taken.contains(&columns.id)).collect()))
    }
}

impl Call<Connector> for Insert {
    type Answer = Inserted;
    const WRITES: bool = true;

    async fn run(&self, session: &mut Session) -> Result<Inserted, Failure> {
        let (mut transaction, timers) = self.begin(session).await?;
        if timers.is_empty() {
            transaction.rollback().await?;
            return Ok(Inserted::Only(HashSet::new()));
        }
        // Definitions first, so that a taken id is noticed there: its row in `due` may be held by a session that changes it, and would be
        // waited for.
        transaction.then(literal::rows(INSERT_DEFINITION, timers.iter().map(|row| definition(row))));
        transaction.then(literal::rows(INSERT_DUE, timers.iter().map(|row| due(row))));
        let mut entries = Entries::default();
        for (new, _) in &timers {
            entries.created(&transaction, new.definition.id, new.created_at);
        }
        entries.write(&mut transaction)?;
        transaction.commit().await.map_err(|failure| self.taken_meanwhile(failure))?;
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

fn definition((new, columns): Row<'_>) -> [Value<'_>; 17] {
    let created_at = Value::Number(new.created_at.as_micros());
    [
        Value::Bytes(columns.id.as_bytes()),
        Value::Number(i64::from(columns.shard)),
        Value::Number(columns.asked),
        Value::Number(columns.execute_at),
        created_at,
        created_at,
        Value::Bytes(&columns.fingerprint),
        Value::Text(&columns.namespace),
        Value::from(&columns.key),
        Value::from(&columns.group),
        Value::from(&columns.correlation_id),
        Value::Text(columns.callback_type),
        Value::Text(columns.delivery),
        Value::from(&columns.retry_policy),
        Value::from(&columns.metadata),
        Value::Text(&columns.callback_config),
        Value::from(&columns.options),
    ]
}

fn due((_, columns): Row<'_>) -> [Value<'_>; 4] {
    [
        Value::Number(i64::from(columns.shard)),
        Value::Number(columns.execute_at),
        Value::Bytes(columns.id.as_bytes()),
        Value::Number(columns.destination),
    ]
}
