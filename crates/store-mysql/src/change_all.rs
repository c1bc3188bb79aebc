//! Changing many timers at once: looked up, locked, looked at again, decided upon, written, all in one transaction.
//!
//! ```text
//!   where do they stand? ──▶ lock their rows in the order of claims ──▶ look again, as they are now ──▶ decide
//!        ▲                                            │                                                  │
//!        └── those that moved before they were locked ┘      progress of the operation ◀── a few statements for each kind of step
//! ```

use std::collections::{HashMap, HashSet};

use domain::{Destination, Status, TimerId, Timestamp};
use serde::Serialize;
use sqlx::{Row as _, mysql::MySqlRow, types::Uuid};
use store::{BulkAction, BulkChange, BulkCounts, BulkItem, BulkStep, DueEntry, Progress, Standing, Terms, Unreadable};
use store_sql::{Call, portions, sql};

use crate::{
    conflict::Held,
    connector::Connector,
    failure::{Failure, Step},
    journal::Entries,
    literal::{self, placed},
    operation::{LOCK_OPERATION, PROGRESS},
    read::Read,
    rows::{DueKey, Hex, destination, destination_column, json, shard_column},
    session::Session,
    transaction::Transaction,
};

/// How often timers may move while we try to get hold of them.
const CHASES_MAX: usize = 4;

pub(crate) const LOCK_DUE: &str = sql!("sql/bulk_lock_due.sql");
pub(crate) const LOCK_PAUSED: &str = sql!("sql/bulk_lock_paused.sql");
pub(crate) const LOCK_OUTCOME: &str = sql!("sql/bulk_lock_outcome.sql");
pub(crate) const STANDING: &str = sql!("sql/bulk_standing.sql");
pub(crate) const OPTIONS: &str = sql!("sql/bulk_options.sql");
pub(crate) const END_DUE: &str = sql!("sql/bulk_end_due.sql");
pub(crate) const END_PAUSED: &str = sql!("sql/bulk_end_paused.sql");
pub(crate) const DELETE_DUE: &str = sql!("sql/bulk_delete_due.sql");
pub(crate) const DELETE_PAUSED: &str = sql!("sql/bulk_delete_paused.sql");
pub(crate) const DELETE_OUTCOME: &str = sql!("sql/bulk_delete_outcome.sql");
pub(crate) const DELETE_ATTEMPTS: &str = sql!("sql/bulk_delete_attempts.sql");
pub(crate) const DELETE_DEFINITIONS: &str = sql!("sql/bulk_delete_definitions.sql");
pub(crate) const LET_EXPIRE_DUE: &str = sql!("sql/bulk_let_expire_due.sql");
pub(crate) const LET_EXPIRE_PAUSED: &str = sql!("sql/bulk_let_expire_paused.sql");
pub(crate) const MOVE_DUE: &str = sql!("sql/bulk_move_due.sql");
pub(crate) const MOVE_PAUSED: &str = sql!("sql/bulk_move_paused.sql");
pub(crate) const MOVE_DEFINITION: &str = sql!("sql/bulk_move_definition.sql");
pub(crate) const PAUSE: &str = sql!("sql/bulk_pause.sql");
pub(crate) const TOUCH_DEFINITION: &str = sql!("sql/bulk_touch_definition.sql");
pub(crate) const RESUME: &str = sql!("sql/bulk_resume.sql");
pub(crate) const RESUME_DEFINITION: &str = sql!("sql/bulk_resume_definition.sql");
pub(crate) const PLACE: &str = sql!("sql/bulk_place.sql");
pub(crate) const REOPEN_DEFINITION: &str = sql!("sql/bulk_reopen_definition.sql");

/// A timer that is locked, as the statements take it.
#[derive(Debug, Clone, Serialize)]
struct Row {
    #[serde(flatten)]
    key: DueKey,
    /// The new time, or the destination.
    next: i64,
    #[serde(skip)]
    was: Was,
}

/// What the journal has to know of a timer before its change.
#[derive(Debug, Clone, Copy)]
struct Was {
    id: TimerId,
    revision: u32,
    status: Status,
    finished_at: Option<Timestamp>,
}

/// Timers of one kind of step, by where they stand.
#[derive(Debug, Default)]
pub struct Rows {
    pending: Vec<Row>,
    others: Vec<Row>,
}

impl Rows {
    /// The timer that is held.
    pub fn of(held: &Held, next: i64, shards: u16) -> Self {
        let timer = &held.timer;
        let was = Was {
            id: timer.id(),
            revision: timer.revision,
            status: timer.status,
            finished_at: timer.status.is_finished().then_some(timer.updated_at),
        };
        let mut rows = Self::default();
        rows.push(was, held.at, next, shards);
        rows
    }

    fn push(&mut self, was: Was, at: Option<i64>, next: i64, shards: u16) {
        let key = DueKey { shard: shard_column(was.id, shards), at: at.unwrap_or(0), id: was.id.into() };
        let rows = if was.status == Status::Pending { &mut self.pending } else { &mut self.others };
        rows.push(Row { key, next, was });
    }

    fn all(&self) -> impl Iterator<Item = &Row> {
        self.pending.iter().chain(&self.others)
    }
}

/// Has one kind of step carried out for timers that are locked, and recorded, with the commit. What a step says of one timer, such as its
/// new time, is taken from the rows.
pub fn apply(
    transaction: &mut Transaction<'_>,
    step: BulkStep,
    rows: &Rows,
    note: Option<&str>,
    now: Timestamp,
) -> Result<(), Failure> {
    write(transaction, step, rows, note, now.as_micros())?;
    let mut entries = Entries::default();
    for Row { was: Was { id, revision, status, finished_at }, .. } in rows.all() {
        match step {
            BulkStep::End { status, .. } => entries.finished(transaction, *id, now, status),
            BulkStep::LetExpire { .. } | BulkStep::Move { .. } | BulkStep::Pause | BulkStep::Resume { .. } => {
                entries.changed(*id, revision.saturating_add(1));
            }
            BulkStep::Reopen { .. } => {
                entries.ended(transaction, *id, finished_at.unwrap_or(now), *status);
                entries.changed(*id, revision.saturating_add(1));
            }
            BulkStep::Remove => {}
        }
    }
    entries.write(transaction)
}

fn write(transaction: &mut Transaction<'_>, step: BulkStep, rows: &Rows, note: Option<&str>, now: i64) -> Result<(), Failure> {
    let (pending, others) = (literal::text(&json(&rows.pending)?), literal::text(&json(&rows.others)?));
    let all = literal::text(&json(&rows.all().collect::<Vec<_>>())?);
    let now = || literal::number(now);
    match step {
        BulkStep::End { status, error } => {
            let (status, error) = (literal::text(status.as_str()), literal::optional_text(error));
            if !rows.pending.is_empty() {
                transaction.then(placed(END_DUE, [status.clone(), error.clone(), now(), pending.clone()]));
                transaction.then(placed(DELETE_DUE, [pending]));
            }
            if !rows.others.is_empty() {
                transaction.then(placed(END_PAUSED, [status, error, now(), others.clone()]));
                transaction.then(placed(DELETE_PAUSED, [others]));
            }
        }
        BulkStep::LetExpire { error, .. } => {
            if !rows.pending.is_empty() {
                transaction.then(placed(LET_EXPIRE_DUE, [pending, literal::text(error)]));
            }
            if !rows.others.is_empty() {
                transaction.then(placed(LET_EXPIRE_PAUSED, [literal::text(error), others.clone()]));
                transaction.then(placed(DELETE_PAUSED, [others]));
            }
            transaction.then(placed(RESUME_DEFINITION, [all, now()]));
        }
        BulkStep::Move { .. } => {
            if !rows.pending.is_empty() {
                transaction.then(placed(MOVE_DUE, [pending]));
            }
            if !rows.others.is_empty() {
                transaction.then(placed(MOVE_PAUSED, [others]));
            }
            transaction.then(placed(MOVE_DEFINITION, [all, now()]));
        }
        BulkStep::Pause => {
            transaction.then(placed(PAUSE, [now(), literal::optional_text(note), all.clone()]));
            transaction.then(placed(DELETE_DUE, [all.clone()]));
            transaction.then(placed(TOUCH_DEFINITION, [all, now()]));
        }
        BulkStep::Resume { .. } => {
            transaction.then(placed(RESUME, [all.clone()]));
            transaction.then(placed(DELETE_PAUSED, [all.clone()]));
            transaction.then(placed(RESUME_DEFINITION, [all, now()]));
        }
        BulkStep::Reopen { .. } => {
            transaction.then(placed(DELETE_OUTCOME, [all.clone()]));
            transaction.then(placed(PLACE, [all.clone()]));
            transaction.then(placed(REOPEN_DEFINITION, [all, now()]));
        }
        BulkStep::Remove => {
            for statement in [DELETE_OUTCOME, DELETE_ATTEMPTS, DELETE_DEFINITIONS] {
                transaction.then(placed(statement, [all.clone()]));
            }
        }
    }
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
pub struct CurrentState {
    pub standing: Standing,
    destination: Destination,
    finished_at: Option<Timestamp>,
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

    async fn run(&self, session: &mut Session) -> Result<Self::Answer, Failure> {
        let mut transaction = Transaction::recording(session).await?;
        if let Some(progress) = &self.progress
            && !lock_operation(transaction.session(), progress).await?
        {
            return transaction.rollback().await.map(|()| None);
        }
        let ids: Vec<TimerId> = self.items.iter().map(|item| item.id).collect();
        let current = hold(transaction.session(), &self.action, &ids, self.now, self.shards).await?;
        let changes = self.change(&mut transaction, &current).await?;
        if let Some(progress) = &self.progress {
            write_progress(transaction.session(), progress, &changes).await?;
        }
        transaction.commit().await?;
        Ok(Some(changes))
    }
}

/// Locks those timers that the action may change, and reads them as they stand then.
pub async fn hold(
    session: &mut Session,
    action: &BulkAction,
    ids: &[TimerId],
    now: Timestamp,
    shards: u16,
) -> Result<HashMap<TimerId, CurrentState>, Failure> {
    let mut held = HashMap::with_capacity(ids.len());
    let mut rest = ids.to_vec();
    for _ in 0..CHASES_MAX {
        let seen = standing(session, &rest).await?;
        rest.retain(|id| seen.get(id).is_some_and(|current| could_change(action, current, now)));
        if rest.is_empty() {
            return Ok(held);
        }
        let locked = lock(session, &rest, &seen, shards).await?;
        if locked.is_empty() {
            continue;
        }
        let locked: Vec<TimerId> = locked.into_iter().collect();
        held.extend(standing(session, &locked).await?);
        rest.retain(|id| !held.contains_key(id));
        if rest.is_empty() {
            return Ok(held);
        }
    }
    Err(Failure::contention("other sessions keep moving these timers"))
}

/// Locks the rows of timers where they were seen. Answers with those that still are there.
async fn lock(
    session: &mut Session,
    ids: &[TimerId],
    seen: &HashMap<TimerId, CurrentState>,
    shards: u16,
) -> Result<HashSet<TimerId>, Failure> {
    let (mut due, mut paused, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    for id in ids {
        let Some(Standing { status, at, .. }) = seen.get(id).map(|current| current.standing) else { continue };
        let at = at.map_or(0, Timestamp::as_micros);
        let rows = match status {
            Status::Pending | Status::Executing => &mut due,
            Status::Paused => &mut paused,
            _ => &mut ended,
        };
        rows.push(DueKey { shard: shard_column(*id, shards), at, id: Hex::from(*id) });
    }
    let mut locked = HashSet::with_capacity(ids.len());
    for (statement, mut rows) in [(LOCK_DUE, due), (LOCK_PAUSED, paused), (LOCK_OUTCOME, ended)] {
        if rows.is_empty() {
            continue;
        }
        let is_due = statement == LOCK_DUE;
        rows.sort_unstable_by_key(|row| if is_due { (row.shard, row.at, row.id.0) } else { (0, 0, row.id.0) });
        let found = sqlx::query_scalar::<_, Uuid>(statement)
            .bind(session.given(&rows).await?)
            .fetch_all(&mut *session)
            .await
            .or_not_done()?;
        locked.extend(found.into_iter().map(TimerId::from_uuid));
    }
    Ok(locked)
}

/// Whether the action could do something with a timer that stands so.
fn could_change(action: &BulkAction, current: &CurrentState, now: Timestamp) -> bool {
    let item = BulkItem { at: Some(now), ..BulkItem::of(TimerId::from_uuid(Uuid::nil()), &current.standing) };
    action.step(&item, &current.standing, now).is_some()
}

async fn standing(session: &mut Session, ids: &[TimerId]) -> Result<HashMap<TimerId, CurrentState>, Failure> {
    let ids: Vec<Hex> = ids.iter().copied().map(Hex::from).collect();
    let rows = sqlx::query(STANDING).bind(session.given(&ids).await?).fetch_all(session).await.or_not_done()?;
    rows.iter().map(|row| Ok((crate::rows::id(row).or_not_done()?, read(row)?))).collect()
}

impl ChangeAll {
    pub async fn change(
        &self,
        transaction: &mut Transaction<'_>,
        current: &HashMap<TimerId, CurrentState>,
    ) -> Result<Vec<BulkChange>, Failure> {
        let mut changes = Vec::with_capacity(self.items.len());
        let mut steps: Vec<(BulkStep, Rows)> = Vec::new();
        let reopened = self.destinations_of_ended(transaction.session()).await?;
        let terms = self.terms(transaction.session()).await?;
        for item in &self.items {
            let found = current.get(&item.id).map(|current| current.on(terms.get(&item.id)));
            let step = found.and_then(|current| self.action.step(item, &current.standing, self.now).map(|step| (step, current)));
            let Some((step, CurrentState { standing, destination, finished_at })) = step else {
                let passed_by = found.map(|current| self.action.passed_by(item, &current.standing, self.now));
                changes.push(passed_by.unwrap_or(BulkChange::Skipped));
                continue;
            };
            let destination = reopened.get(&item.id).copied().unwrap_or(destination);
            let next = match step {
                BulkStep::Move { to: at } | BulkStep::Resume { at } | BulkStep::LetExpire { at, .. } => at.as_micros(),
                BulkStep::Reopen { .. } => destination_column(destination),
                _ => 0,
            };
            let Standing { status, revision, at, .. } = standing;
            let was = Was { id: item.id, revision, status, finished_at };
            let at = match step {
                BulkStep::Reopen { at } => Some(at),
                _ => at,
            };
            rows_of(&mut steps, step).push(was, at.map(Timestamp::as_micros), next, self.shards);
            changes.push(change_of(item.id, step, status, destination));
        }
        for (step, rows) in steps {
            apply(transaction, step, &rows, self.action.note(), self.now)?;
        }
        Ok(changes)
    }

    /// What the options of timers say that have any, if the action asks for it.
    async fn terms(&self, session: &mut Session) -> Result<HashMap<TimerId, Option<Terms>>, Failure> {
        let mut terms = HashMap::new();
        if !self.action.asks_for_terms() {
            return Ok(terms);
        }
        for portion in portions(self.items.len()) {
            let ids: Vec<Hex> = self.items[portion].iter().map(|item| Hex::from(item.id)).collect();
            let given = session.given(&ids).await?;
            for row in sqlx::query(OPTIONS).bind(given).fetch_all(&mut *session).await.or_not_done()? {
                let options: Option<&str> = row.try_get("options").or_not_done()?;
                terms.insert(crate::rows::id(&row).or_not_done()?, Terms::in_column(options));
            }
        }
        Ok(terms)
    }

    /// Where timers go that have ended: only their definitions say so.
    async fn destinations_of_ended(&self, session: &mut Session) -> Result<HashMap<TimerId, Destination>, Failure> {
        let mut destinations = HashMap::new();
        if self.action != BulkAction::Retry {
            return Ok(destinations);
        }
        for portion in portions(self.items.len()) {
            let ids = self.items[portion].iter().map(|item| item.id).collect();
            for (id, existing) in Read(ids).run(session).await? {
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

fn read(row: &MySqlRow) -> Result<CurrentState, Failure> {
    let ended: Option<&str> = row.try_get("status").or_not_done()?;
    let (waits, claimed): (bool, bool) = (row.try_get("waits").or_not_done()?, row.try_get("claimed").or_not_done()?);
    let status = match (waits, claimed, row.try_get("paused").or_not_done()?) {
        (true, false, _) => Some(Status::Pending),
        (true, true, _) => Some(Status::Executing),
        (false, _, true) => Some(Status::Paused),
        (false, _, false) => ended.and_then(Status::parse),
    };
    let revision: i64 = row.try_get("revision").or_not_done()?;
    let micros = |column| Ok::<_, Failure>(row.try_get::<Option<i64>, _>(column).or_not_done()?.map(Timestamp::from_micros));
    let column: Option<i64> = row.try_get("destination").or_not_done()?;
    Ok(CurrentState {
        standing: Standing {
            status: status.ok_or_else(|| Unreadable("it is neither due nor paused nor finished".to_owned()))?,
            revision: u32::try_from(revision).map_err(|_| Unreadable("revision is out of range".to_owned()))?,
            at: micros("at")?,
            execute_at: Timestamp::from_micros(row.try_get("execute_at").or_not_done()?),
            // Until they are asked for, nothing stands in the way of a change.
            terms: Some(Terms::default()),
        },
        destination: destination(column.unwrap_or(0)),
        finished_at: micros("finished_at")?,
    })
}

async fn lock_operation(session: &mut Session, progress: &Progress) -> Result<bool, Failure> {
    let query = sqlx::query(LOCK_OPERATION).bind(progress.operation.0.as_uuid()).bind(progress.epoch.0);
    Ok(query.fetch_optional(session).await.or_not_done()?.is_some())
}

async fn write_progress(session: &mut Session, progress: &Progress, changes: &[BulkChange]) -> Result<(), Failure> {
    let counts = BulkCounts::of(changes);
    sqlx::query(PROGRESS)
        .bind(progress.cursor.map(|cursor| cursor.at.as_micros()))
        .bind(progress.cursor.map(|cursor| cursor.id.as_uuid()))
        .bind(counts.changed.cast_signed())
        .bind(counts.skipped.cast_signed())
        .bind((progress.errors + counts.unreadable).cast_signed())
        .bind(progress.matched.map(u64::cast_signed))
        .bind(progress.lease.as_micros())
        .bind(progress.operation.0.as_uuid())
        .execute(session)
        .await
        .or_not_done()?;
    Ok(())
}
