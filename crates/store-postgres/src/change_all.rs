//! Changing many timers at once: locked, looked at, decided upon, written, all in one transaction.
//!
//! ```text
//!   lock their rows in the order of claims ──▶ look again, as they are now ──▶ decide ──▶ one statement for each kind of step
//!        ▲                                            │                                       │
//!        └── those that moved while they were waited for                       progress of the operation ──▶ commit
//! ```

use std::collections::{HashMap, HashSet};

use domain::{Destination, Status, TimerId, Timestamp};
use sqlx::{Connection, PgConnection, Row, postgres::PgRow, types::Uuid};
use store::{BulkAction, BulkChange, BulkCounts, BulkItem, BulkStep, DueEntry, Progress, Standing, Terms, Unreadable};
use store_sql::{Call, portions, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    operation::{LOCK_OPERATION, PROGRESS},
    read::Read,
    rows::{destination, destination_column, shard_column, text_column},
};

/// How often timers may move while we try to get hold of them.
const CHASES_MAX: usize = 4;

pub(crate) const LOCK_DUE: &str = sql!("sql/bulk_lock_due.sql");
pub(crate) const LOCK_PAUSED: &str = sql!("sql/bulk_lock_paused.sql");
pub(crate) const LOCK_OUTCOME: &str = sql!("sql/bulk_lock_outcome.sql");
pub(crate) const STANDING: &str = sql!("sql/bulk_standing.sql");
pub(crate) const OPTIONS: &str = sql!("sql/bulk_options.sql");
pub(crate) const END: &str = sql!("sql/bulk_end.sql");
pub(crate) const LET_EXPIRE: &str = sql!("sql/bulk_let_expire.sql");
pub(crate) const MOVE: &str = sql!("sql/bulk_move.sql");
pub(crate) const PAUSE: &str = sql!("sql/bulk_pause.sql");
pub(crate) const RESUME: &str = sql!("sql/bulk_resume.sql");
pub(crate) const REOPEN: &str = sql!("sql/bulk_reopen.sql");
pub(crate) const REMOVE: &str = sql!("sql/bulk_remove.sql");

/// Rows of the tables in which timers stand, one array for each column.
#[derive(Debug, Default)]
pub struct Rows {
    ids: Vec<Uuid>,
    shards: Vec<i16>,
    /// When their next attempts are due; zero for those that have ended, unless they are tried again.
    ats: Vec<i64>,
    /// The new times, or the destinations.
    news: Vec<i64>,
}

impl Rows {
    /// One timer, whose next attempt is due at `at`.
    pub fn of(id: TimerId, at: Option<i64>, shards: u16) -> Self {
        let mut rows = Self::default();
        rows.push(id, at, 0, shards);
        rows
    }

    fn push(&mut self, id: TimerId, at: Option<i64>, new: i64, shards: u16) {
        self.ids.push(id.as_uuid());
        self.shards.push(shard_column(id, shards));
        self.ats.push(at.unwrap_or(0));
        self.news.push(new);
    }
}

/// Carries out one kind of step for timers that are locked. `at` of a step is taken from the rows, where it is for many.
pub async fn apply(
    session: &mut PgConnection,
    step: BulkStep,
    rows: &Rows,
    note: Option<&str>,
    now: Timestamp,
) -> Result<(), Failure> {
    let Rows { ids, shards, ats, news } = rows;
    let now = now.as_micros();
    let query = match step {
        BulkStep::End { status, error } => {
            sqlx::query(END).bind(ids).bind(shards).bind(ats).bind(status.as_str()).bind(error).bind(now)
        }
        BulkStep::LetExpire { at, error } => {
            sqlx::query(LET_EXPIRE).bind(ids).bind(shards).bind(ats).bind(at.as_micros()).bind(error).bind(now)
        }
        BulkStep::Move { .. } => sqlx::query(MOVE).bind(ids).bind(shards).bind(ats).bind(news).bind(now),
        BulkStep::Pause => sqlx::query(PAUSE).bind(ids).bind(shards).bind(ats).bind(now).bind(note),
        BulkStep::Resume { at } if ids.len() == 1 => {
            sqlx::query(RESUME).bind(ids).bind(shards).bind(vec![at.as_micros()]).bind(now)
        }
        BulkStep::Resume { .. } => sqlx::query(RESUME).bind(ids).bind(shards).bind(news).bind(now),
        BulkStep::Reopen { .. } => sqlx::query(REOPEN).bind(ids).bind(shards).bind(news).bind(ats).bind(now),
        BulkStep::Remove => sqlx::query(REMOVE).bind(ids),
    };
    query.execute(session).await.or_not_done()?;
    Ok(())
}

/// Changes timers, and answers with what became of each; `None` when the operation is not its owner's any more.
pub struct ChangeAll {
    pub action: BulkAction,
    pub items: Vec<BulkItem>,
    pub progress: Option<Progress>,
    pub now: Timestamp,
    pub shards: u16,
}

/// The state in which a timer is found, with where it goes.
#[derive(Debug, Clone, Copy)]
struct CurrentState {
    standing: Standing,
    destination: Destination,
}

impl CurrentState {
    /// The same timer with its terms, if it has any.
    fn on(mut self, terms: Option<&Option<Terms>>) -> Self {
        self.standing.terms = terms.copied().unwrap_or(self.standing.terms);
        self
    }
}

impl Call<Connector> for ChangeAll {
    type Answer = Option<Vec<BulkChange>>;
    const WRITES: bool = true;
    const LEAVES_A_TRANSACTION: bool = true;

    async fn run(&self, session: &mut PgConnection) -> Result<Self::Answer, Failure> {
        let mut transaction = session.begin().await.or_not_done()?;
        if let Some(progress) = &self.progress
            && !lock_operation(&mut transaction, progress).await?
        {
            return Ok(None);
        }
        let current = self.hold(&mut transaction).await?;
        let changes = self.change(&mut transaction, &current).await?;
        if let Some(progress) = &self.progress {
            write_progress(&mut transaction, progress, &changes).await?;
        }
        transaction.commit().await.or_unknown()?;
        Ok(Some(changes))
    }
}

impl ChangeAll {
    /// Locks what the action may change, and reads it as it stands then.
    async fn hold(&self, session: &mut PgConnection) -> Result<HashMap<Uuid, CurrentState>, Failure> {
        let mut held = HashMap::with_capacity(self.items.len());
        let mut rest: Vec<(Uuid, i16)> =
            self.items.iter().map(|item| (item.id.as_uuid(), shard_column(item.id, self.shards))).collect();
        for _ in 0..CHASES_MAX {
            if rest.is_empty() {
                break;
            }
            let (ids, shards): (Vec<Uuid>, Vec<i16>) = rest.iter().copied().unzip();
            let locked = self.lock(session, &ids, &shards).await?;
            let standing = sqlx::query(STANDING).bind(&ids).bind(&shards).fetch_all(&mut *session).await.or_not_done()?;
            let mut moved = HashSet::new();
            for row in &standing {
                let id: Uuid = row.try_get("id").or_not_done()?;
                let current = read(row)?;
                if locked.contains(&id) {
                    held.insert(id, current);
                } else if self.could_change(&current) {
                    moved.insert(id);
                }
            }
            rest.retain(|(id, _)| moved.contains(id));
        }
        Ok(held)
    }

    async fn lock(&self, session: &mut PgConnection, ids: &[Uuid], shards: &[i16]) -> Result<HashSet<Uuid>, Failure> {
        use BulkAction::{Cancel, Delete, Expire, Fire, Pause, Reschedule, Resume, Retry};
        let mut locked = HashSet::with_capacity(ids.len());
        if matches!(self.action, Cancel | Expire | Fire | Pause { .. } | Reschedule) {
            let query = sqlx::query_scalar::<_, Uuid>(LOCK_DUE).bind(ids).bind(shards);
            locked.extend(query.fetch_all(&mut *session).await.or_not_done()?);
        }
        if matches!(self.action, Cancel | Expire | Reschedule | Resume { .. }) {
            let query = sqlx::query_scalar::<_, Uuid>(LOCK_PAUSED).bind(ids);
            locked.extend(query.fetch_all(&mut *session).await.or_not_done()?);
        }
        if matches!(self.action, Retry | Delete) {
            let query = sqlx::query_scalar::<_, Uuid>(LOCK_OUTCOME).bind(ids);
            locked.extend(query.fetch_all(&mut *session).await.or_not_done()?);
        }
        Ok(locked)
    }

    /// Whether the action could do something with a timer that was not locked: then it has moved, and is looked for again.
    fn could_change(&self, current: &CurrentState) -> bool {
        let item = BulkItem { at: Some(self.now), ..BulkItem::of(TimerId::from_uuid(Uuid::nil()), &current.standing) };
        self.action.step(&item, &current.standing, self.now).is_some()
    }

    async fn change(
        &self,
        session: &mut PgConnection,
        current: &HashMap<Uuid, CurrentState>,
    ) -> Result<Vec<BulkChange>, Failure> {
        let mut changes = Vec::with_capacity(self.items.len());
        let mut steps: Vec<(BulkStep, Rows)> = Vec::new();
        let (reopened, terms) = (self.destinations_of_ended(session).await?, self.terms(session).await?);
        for item in &self.items {
            let found = current.get(&item.id.as_uuid()).map(|current| current.on(terms.get(&item.id)));
            let step = found.and_then(|current| self.action.step(item, &current.standing, self.now).map(|step| (step, current)));
            let Some((step, current)) = step else {
                let passed_by = found.map(|current| self.action.passed_by(item, &current.standing, self.now));
                changes.push(passed_by.unwrap_or(BulkChange::Skipped));
                continue;
            };
            let destination = reopened.get(&item.id).copied().unwrap_or(current.destination);
            let new = match step {
                BulkStep::Move { to: at } | BulkStep::Resume { at } => at.as_micros(),
                BulkStep::Reopen { .. } => destination_column(destination),
                _ => 0,
            };
            let at = match step {
                BulkStep::Reopen { at } => Some(at),
                _ => current.standing.at,
            };
            let at = at.map(Timestamp::as_micros);
            rows_of(&mut steps, step).push(item.id, at, new, self.shards);
            changes.push(change_of(item.id, step, current.standing.status, destination));
        }
        let note = self.action.note().map(text_column);
        for (step, rows) in steps {
            // Several rows of one resume have each a time of their own.
            apply(session, step, &rows, note.as_deref(), self.now).await?;
        }
        Ok(changes)
    }

    /// What the options of timers say that have any, if the action asks for it.
    async fn terms(&self, session: &mut PgConnection) -> Result<HashMap<TimerId, Option<Terms>>, Failure> {
        let mut terms = HashMap::new();
        if !self.action.asks_for_terms() {
            return Ok(terms);
        }
        for portion in portions(self.items.len()) {
            let ids: Vec<Uuid> = self.items[portion].iter().map(|item| item.id.as_uuid()).collect();
            for row in sqlx::query(OPTIONS).bind(ids).fetch_all(&mut *session).await.or_not_done()? {
                let options: Option<&str> = row.try_get("options").or_not_done()?;
                terms.insert(TimerId::from_uuid(row.try_get("id").or_not_done()?), Terms::in_column(options));
            }
        }
        Ok(terms)
    }

    /// Where timers go that have ended: only their definitions say so.
    async fn destinations_of_ended(&self, session: &mut PgConnection) -> Result<HashMap<TimerId, Destination>, Failure> {
        let mut destinations = HashMap::new();
        if self.action != BulkAction::Retry {
            return Ok(destinations);
        }
        for portion in portions(self.items.len()) {
            let ids = self.items[portion].iter().map(|item| item.id).collect();
            for (id, existing) in Read::new(ids, self.shards).run(session).await? {
                destinations.insert(id, existing?.timer.definition.destination());
            }
        }
        Ok(destinations)
    }
}

/// The rows of steps of the same kind.
fn rows_of(steps: &mut Vec<(BulkStep, Rows)>, step: BulkStep) -> &mut Rows {
    let is_same = |other: &BulkStep| match (step, other) {
        (BulkStep::End { .. }, other) => step == *other,
        (step, other) => std::mem::discriminant(&step) == std::mem::discriminant(other),
    };
    let place = steps.iter().position(|(other, _)| is_same(other)).unwrap_or(steps.len());
    if place == steps.len() {
        steps.push((step, Rows::default()));
    }
    &mut steps[place].1
}

const fn change_of(id: TimerId, step: BulkStep, was: Status, destination: Destination) -> BulkChange {
    match step {
        BulkStep::Move { to: at } if matches!(was, Status::Pending) => BulkChange::Due(DueEntry { at, id, destination }),
        BulkStep::Resume { at } | BulkStep::Reopen { at } | BulkStep::LetExpire { at, .. } => {
            BulkChange::Due(DueEntry { at, id, destination })
        }
        _ => BulkChange::Changed,
    }
}

fn read(row: &PgRow) -> Result<CurrentState, Failure> {
    let ended: Option<&str> = row.try_get("status").or_not_done()?;
    let (waits, claimed): (bool, bool) = (row.try_get("waits").or_not_done()?, row.try_get("claimed").or_not_done()?);
    let status = match (waits, claimed, row.try_get("paused").or_not_done()?) {
        (true, false, _) => Some(Status::Pending),
        (true, true, _) => Some(Status::Executing),
        (false, _, true) => Some(Status::Paused),
        (false, _, false) => ended.and_then(Status::parse),
    };
    let revision: i64 = row.try_get("revision").or_not_done()?;
    let at: Option<i64> = row.try_get("at").or_not_done()?;
    let column: Option<i64> = row.try_get("destination").or_not_done()?;
    Ok(CurrentState {
        standing: Standing {
            status: status.ok_or_else(|| Unreadable("it is neither due nor paused nor finished".to_owned()))?,
            revision: u32::try_from(revision).map_err(|_| Unreadable("revision is out of range".to_owned()))?,
            at: at.map(Timestamp::from_micros),
            execute_at: Timestamp::from_micros(row.try_get("execute_at").or_not_done()?),
            // Until they are asked for, nothing stands in the way of a change.
            terms: Some(Terms::default()),
        },
        destination: destination(column.unwrap_or(0)),
    })
}

async fn lock_operation(session: &mut PgConnection, progress: &Progress) -> Result<bool, Failure> {
    let query = sqlx::query(LOCK_OPERATION).bind(progress.operation.0.as_uuid()).bind(progress.epoch.0);
    Ok(query.fetch_optional(session).await.or_not_done()?.is_some())
}

async fn write_progress(session: &mut PgConnection, progress: &Progress, changes: &[BulkChange]) -> Result<(), Failure> {
    let counts = BulkCounts::of(changes);
    sqlx::query(PROGRESS)
        .bind(progress.operation.0.as_uuid())
        .bind(progress.cursor.map(|cursor| cursor.at.as_micros()))
        .bind(progress.cursor.map(|cursor| cursor.id.as_uuid()))
        .bind(counts.changed.cast_signed())
        .bind(counts.skipped.cast_signed())
        .bind((progress.errors + counts.unreadable).cast_signed())
        .bind(progress.lease.as_micros())
        .bind(progress.matched.map(u64::cast_signed))
        .execute(session)
        .await
        .or_not_done()?;
    Ok(())
}
