use std::{collections::HashMap, sync::Arc};

use domain::{Status, Timer, TimerId, Timestamp};
use sqlx::{PgConnection, Row, postgres::PgRow};
use store::Changed;
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows::{self, DefinitionColumns},
};

pub(crate) const REPLACE_FREE: &str = sql!("../sql/replace_free.sql");

/// Replaces the definitions of timers that are pending, free, and at the revision that was read. Each id comes once. `None` for one
/// that it passed over.
pub struct ReplaceFree {
    wanted: Vec<(Arc<Timer>, Timestamp)>,
    columns: DefinitionColumns,
}

impl ReplaceFree {
    pub fn new(wanted: Vec<(Arc<Timer>, Timestamp)>, shards: u16) -> Self {
        let mut columns = DefinitionColumns::default();
        for (timer, _) in &wanted {
            columns.push(&timer.definition, timer.execute_at, timer.definition.fingerprint(), shards);
        }
        Self { wanted, columns }
    }

    fn numbers(&self, number: impl Fn(&Timer, Timestamp) -> i64) -> Vec<i64> {
        self.wanted.iter().map(|(timer, now)| number(timer, *now)).collect()
    }
}

impl Call<Connector> for ReplaceFree {
    type Answer = Vec<Option<Changed>>;
    const WRITES: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        let columns = &self.columns;
        let expiries: Vec<_> = self.wanted.iter().map(|(timer, _)| timer.expires_at().map(Timestamp::as_micros)).collect();
        let rows = sqlx::query(REPLACE_FREE)
            .bind(&columns.ids)
            .bind(&columns.namespaces)
            .bind(&columns.keys)
            .bind(&columns.askeds)
            .bind(&columns.execute_ats)
            .bind(&columns.callback_types)
            .bind(&columns.callback_configs)
            .bind(&columns.metadatas)
            .bind(&columns.correlation_ids)
            .bind(&columns.retry_policies)
            .bind(&columns.deliveries)
            .bind(&columns.fingerprints)
            .bind(self.numbers(|_, now| now.as_micros()))
            .bind(&columns.options)
            .bind(&columns.groups)
            .bind(self.numbers(|timer, _| i64::from(timer.revision.saturating_add(1))))
            .bind(self.numbers(|timer, _| i64::from(timer.revision)))
            .bind(&columns.destinations)
            .bind(&columns.shards)
            .bind(expiries)
            .fetch_all(session)
            .await
            .or_unknown()?;
        let replaced = rows.iter().map(|row| Ok((rows::id(row).or_unknown()?, row)));
        let replaced: HashMap<TimerId, &PgRow> = replaced.collect::<Result<_, Failure>>()?;
        let answer = |(timer, now): &(Arc<Timer>, Timestamp)| {
            replaced.get(&timer.id()).map(|row| after_replace(row, timer, *now)).transpose()
        };
        self.wanted.iter().map(answer).collect()
    }
}

fn after_replace(row: &PgRow, changed: &Timer, now: Timestamp) -> Result<Changed, Failure> {
    Ok(Changed::Done(Timer {
        status: Status::Pending,
        attempt: u32::try_from(row.try_get::<i32, _>("attempt").or_unknown()?).unwrap_or(0),
        last_error: row.try_get("last_error").or_unknown()?,
        executed_at: None,
        created_at: Timestamp::from_micros(row.try_get("created_at").or_unknown()?),
        updated_at: now,
        revision: changed.revision.saturating_add(1),
        pause: None,
        ..changed.clone()
    }))
}
