//! The statements that register timers. [`store_sql::Creates`] says in which order.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use domain::{Namespace, NewTimer, TimerId};
use sqlx::{PgConnection, Row, types::Uuid};
use store::{Created, StoreResult, Unreadable};
use store_sql::{Call, ExistingTimer, Inserted, Inserts, sql};

use crate::{
    conflict::Resolve,
    connector::{Bulkhead, Connector},
    failure::{Failure, Step, Verdict},
    namespace_indexes::NamespaceIndexes,
    read::Read,
    rows::DefinitionColumns,
};

pub(crate) const INSERT: &str = sql!("sql/insert.sql");
pub(crate) const INSERT_FREE: &str = sql!("sql/insert_free.sql");

pub type Creates = store_sql::Creates<Statements>;

/// What timers are registered with.
#[derive(Debug)]
pub struct Statements {
    pub bulkhead: Bulkhead,
    pub shards: Arc<AtomicU16>,
    pub namespace_indexes: Arc<NamespaceIndexes>,
}

impl Statements {
    fn shards(&self) -> u16 {
        self.shards.load(Ordering::Relaxed)
    }
}

impl Inserts for Statements {
    const BATCH_TIMERS: &'static str = "timer_postgres_create_batch_timers";

    /// An id that no client chose is free, so most batches need not ask. Where that turns out to be wrong, nothing was written.
    async fn insert(&self, timers: &[Arc<NewTimer>]) -> Result<Inserted, Failure> {
        if timers.iter().any(|new| new.definition.namespace.as_str() != Namespace::DEFAULT) {
            self.namespace_indexes.want();
        }
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
        self.bulkhead.run(Read::new(ids, self.shards())).await
    }

    async fn resolve(&self, new: Arc<NewTimer>) -> StoreResult<Option<Created>> {
        self.bulkhead.run(Resolve::new(new, self.shards())).await
    }
}

#[derive(Clone)]
struct Insert {
    columns: Arc<DefinitionColumns>,
    created_ats: Arc<Vec<i64>>,
    asks_first: bool,
}

impl Insert {
    fn new(timers: &[Arc<NewTimer>], shards: u16) -> Self {
        let mut columns = DefinitionColumns::default();
        for new in timers {
            columns.push(&new.definition, new.execute_at, new.definition.fingerprint(), shards);
        }
        Self {
            columns: Arc::new(columns),
            created_ats: Arc::new(timers.iter().map(|new| new.created_at.as_micros()).collect()),
            // A client that names a timer by a key may well do so again.
            asks_first: timers.iter().any(|new| new.definition.key.is_some()),
        }
    }
}

impl Call<Connector> for Insert {
    type Answer = Inserted;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Inserted, Failure> {
        let columns = &self.columns;
        let query = sqlx::query(if self.asks_first { INSERT_FREE } else { INSERT })
            .bind(&columns.ids)
            .bind(&columns.namespaces)
            .bind(unless_empty(&columns.keys))
            .bind(&columns.askeds)
            .bind(&columns.execute_ats)
            .bind(&columns.callback_types)
            .bind(&columns.callback_configs)
            .bind(unless_empty(&columns.metadatas))
            .bind(unless_empty(&columns.correlation_ids))
            .bind(unless_empty(&columns.retry_policies))
            .bind(&columns.deliveries)
            .bind(&columns.fingerprints)
            .bind(&*self.created_ats)
            .bind(&columns.destinations)
            .bind(&columns.shards)
            .bind(unless_empty(&columns.options))
            .bind(unless_empty(&columns.groups));
        if !self.asks_first {
            query.execute(session).await.or_unknown()?;
            return Ok(Inserted::All);
        }
        let rows = query.fetch_all(session).await.or_unknown()?;
        let inserted: Result<HashSet<Uuid>, _> = rows.iter().map(|row| row.try_get("id")).collect();
        Ok(Inserted::Only(inserted.or_unknown()?.into_iter().map(TimerId::from_uuid).collect()))
    }
}

/// `None` for a column in which no timer has anything: an array of nothing but NULL would be written, sent and taken apart for nothing.
fn unless_empty(column: &Vec<Option<String>>) -> Option<&Vec<Option<String>>> {
    column.iter().any(Option::is_some).then_some(column)
}
