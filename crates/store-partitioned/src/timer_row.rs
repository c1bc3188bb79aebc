//! One timer as one row: what changes often in its head, what its client defined in its body, its attempts in its log.

use domain::{Attempt, Definition, Destination, Fingerprint, Next, Status, Timer, TimerId, Timestamp, limits};
use store::{
    ClaimToken, Claimed, DueEntry, Happened, RequestColumns, ShardLease, Sort, StoreResult, StoredTimer, Terms, Unreadable,
};

use crate::{
    Change, Columns, Condition, Positions, Row, Version, Write,
    columns::{Body, Head, StoredAttempt, attempts_in},
    json::{corrupt, from_json, to_json},
    layout,
};

/// How many operations a timer notes. Seconds lie between a page and its repetition, and each node changes timers for one operation at a
/// time: more can come in between only where many operations over the same timers run on several nodes.
const OPERATIONS_NOTED_MAX: usize = 4;

/// A timer that was read, or is about to be written.
#[derive(Debug, Clone)]
pub struct TimerRow {
    pub id: TimerId,
    pub head: Head,
    body: Option<Result<Body, Unreadable>>,
    is_body_new: bool,
    attempts: Option<Vec<StoredAttempt>>,
    is_log_new: bool,
    /// `None` while it is in no database.
    version: Option<Version>,
    /// Where it stood when it was read.
    before: Positions,
    /// What is to be recorded once it is written.
    pub events: Vec<Happened>,
}

impl TimerRow {
    pub fn new(definition: &Definition, execute_at: Timestamp, created_at: Timestamp) -> Self {
        let body = Body::of(definition);
        let head = Head {
            namespace: definition.namespace.as_str().to_owned(),
            key: definition.key.as_ref().map(|key| key.as_str().to_owned()),
            group: definition.group.as_ref().map(|group| group.as_str().to_owned()),
            correlation_id: definition.correlation_id.as_ref().map(|id| id.as_str().to_owned()),
            kind: definition.callback.kind().to_owned(),
            destination: definition.destination().0,
            fingerprint: u128::from_be_bytes(definition.fingerprint().0),
            execute_at: execute_at.as_micros(),
            at: execute_at.as_micros(),
            status: Status::Pending,
            attempt: 0,
            last_error: None,
            executed_at: None,
            created_at: created_at.as_micros(),
            updated_at: created_at.as_micros(),
            revision: 1,
            paused_at: None,
            pause_note: None,
            held: None,
            recorded: 0,
            operations: Vec::new(),
        };
        Self {
            id: definition.id,
            head,
            body: Some(Ok(body)),
            is_body_new: true,
            attempts: None,
            is_log_new: false,
            version: None,
            before: Positions::default(),
            events: Vec::new(),
        }
    }

    /// A row with the columns that were read.
    pub fn read(id: TimerId, row: &Row, columns: Columns) -> StoreResult<Self> {
        let head: Head = from_json(&row.head).map_err(corrupt)?;
        let attempts = if columns.log { Some(attempts_in(&row.log).map_err(corrupt)?) } else { None };
        let mut read = Self {
            id,
            head,
            body: columns.body.then(|| from_json(&row.body)),
            is_body_new: false,
            attempts,
            is_log_new: false,
            version: Some(row.version),
            before: Positions::default(),
            events: Vec::new(),
        };
        read.before = read.positions();
        Ok(read)
    }

    // ── As the store shows it ──────────────────────────────────────────────────────────────────────────────────

    pub fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.head.at)
    }

    /// Notes that this operation changed it.
    pub fn note_operation(&mut self, operation: u128) {
        let noted = &mut self.head.operations;
        noted.drain(..(noted.len() + 1).saturating_sub(OPERATIONS_NOTED_MAX));
        noted.push(operation);
    }

    /// Its time in the order of a list, in microseconds.
    pub const fn time(&self, sort: Sort) -> i64 {
        match sort {
            Sort::CreatedAt => self.head.created_at,
            Sort::ExecuteAt => self.head.execute_at,
        }
    }

    pub fn entry(&self) -> DueEntry {
        DueEntry { at: self.at(), id: self.id, destination: Destination(self.head.destination) }
    }

    pub fn body(&self) -> Result<&Body, Unreadable> {
        match &self.body {
            Some(body) => body.as_ref().map_err(Clone::clone),
            None => Err(Unreadable("the body was not read".to_owned())),
        }
    }

    pub fn stored(&self) -> Result<StoredTimer, Unreadable> {
        let (head, body) = (&self.head, self.body()?);
        Ok(StoredTimer {
            id: self.id,
            namespace: head.namespace.clone(),
            key: head.key.clone(),
            asked: body.asked,
            callback_config: body.callback.clone(),
            metadata: body.metadata.clone(),
            correlation_id: head.correlation_id.clone(),
            retry_policy: body.retry_policy.clone(),
            delivery: body.delivery.clone(),
            group: head.group.clone(),
            options: body.options.clone(),
            execute_at: head.execute_at,
            status: head.status,
            attempt: head.attempt,
            last_error: head.last_error.clone(),
            executed_at: head.executed_at,
            created_at: head.created_at,
            updated_at: head.updated_at,
            revision: head.revision,
            paused_at: head.paused_at,
            pause_note: head.pause_note.clone(),
        })
    }

    /// What its options say about bulk changes; `None` when they cannot be read.
    pub fn terms(&self) -> Option<Terms> {
        Terms::in_column(self.body().ok()?.options.as_deref())
    }

    pub fn timer(&self) -> Result<Timer, Unreadable> {
        self.stored()?.into_timer()
    }

    /// The timer, for a call that must not go on without it.
    pub fn timer_or_corrupt(&self) -> StoreResult<Timer> {
        self.timer().map_err(corrupt)
    }

    pub const fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.head.fingerprint.to_be_bytes())
    }

    pub fn revision(&self) -> u32 {
        u32::try_from(self.head.revision).unwrap_or(u32::MAX)
    }

    pub fn attempts(&self) -> Vec<Attempt> {
        self.attempts.iter().flatten().map(StoredAttempt::attempt).collect()
    }

    /// The attempt that was recorded as this one, counted from one, if it is kept.
    pub fn attempt_at(&self, seq: i64) -> Option<Attempt> {
        let attempts = self.attempts.as_ref()?;
        let from_the_end = usize::try_from(self.head.recorded - seq).ok()?;
        attempts.get(attempts.len().checked_sub(1 + from_the_end)?).map(StoredAttempt::attempt)
    }

    /// The claim as its owner sees it, or the node that settles it for an owner that is gone.
    pub fn claimed(&self, shard_lease: ShardLease) -> Option<Claimed> {
        let held = self.head.held?;
        Some(Claimed {
            entry: self.entry(),
            shard_lease,
            token: ClaimToken(held.token),
            attempt: u32::try_from(self.head.attempt).unwrap_or(u32::MAX),
            timer: self.timer(),
        })
    }

    /// The position of its claim, if it has one.
    pub fn claim_position(&self) -> Option<Vec<u8>> {
        self.head.held.map(|held| layout::claimed(&held, self.head.at, self.id))
    }

    // ── As the database keeps it ───────────────────────────────────────────────────────────────────────────────

    fn positions(&self) -> Positions {
        let (head, id) = (&self.head, self.id);
        let mut positions = Positions::default()
            .with(layout::CREATED, layout::by_time(head.created_at, id))
            .with(layout::EXECUTE, layout::by_time(head.execute_at, id));
        if let Some(group) = &head.group {
            positions = positions.with(layout::GROUP, layout::group_member(&head.namespace, group, id));
        }
        match (head.status, head.held) {
            (Status::Pending, _) => positions.with(layout::STANDING, layout::pending(&self.entry())),
            (Status::Executing, Some(held)) => positions.with(layout::STANDING, layout::claimed(&held, head.at, id)),
            (status, _) if status.is_finished() => positions.with(layout::STANDING, layout::ended(head.updated_at, id)),
            _ => positions,
        }
    }

    const fn condition(&self) -> Condition {
        match self.version {
            Some(version) => Condition::Is(version),
            None => Condition::Absent,
        }
    }

    /// Writes the row as it is now, if it still is as it was read.
    pub fn put(&self, version: Version) -> Write {
        let body = self.body.as_ref().filter(|_| self.is_body_new).and_then(|body| body.as_ref().ok()).map(to_json);
        let log = self.attempts.as_ref().filter(|_| self.is_log_new).map(to_json);
        let change = Change::Put { version, head: to_json(&self.head), body, log, positions: self.positions() };
        Write { key: layout::timer_key(self.id), condition: self.condition(), change, before: self.before.clone() }
    }

    /// Removes the row, if it still is as it was read.
    pub fn delete(&self) -> Write {
        Write {
            key: layout::timer_key(self.id),
            condition: self.condition(),
            change: Change::Delete,
            before: self.before.clone(),
        }
    }

    /// Another definition. What is remembered of the timer's life stays.
    pub fn define(&mut self, definition: &Definition) {
        let new =
            Self::new(definition, Timestamp::from_micros(self.head.execute_at), Timestamp::from_micros(self.head.created_at));
        self.head.group = new.head.group;
        self.head.correlation_id = new.head.correlation_id;
        self.head.kind = new.head.kind;
        self.head.destination = new.head.destination;
        self.head.fingerprint = new.head.fingerprint;
        self.head.namespace = new.head.namespace;
        self.head.key = new.head.key;
        self.body = new.body;
        self.is_body_new = true;
    }

    /// Other columns of the request, when only the time changes.
    pub fn ask(&mut self, columns: RequestColumns) {
        if let Some(Ok(body)) = &mut self.body {
            body.asked = columns.asked;
            body.options = columns.options;
            self.is_body_new = true;
        }
    }

    pub fn remember(&mut self, attempt: &Attempt) {
        let attempts = self.attempts.get_or_insert_default();
        attempts.push(StoredAttempt::of(attempt));
        let excess = attempts.len().saturating_sub(limits::ATTEMPTS_KEPT);
        attempts.drain(..excess);
        self.is_log_new = true;
        self.head.recorded += 1;
    }

    /// A new life: everything but the version, the attempts and the rising revision begins anew.
    pub fn begin_anew(&mut self, definition: &Definition, execute_at: Timestamp, now: Timestamp) {
        let (revision, recorded) = (self.head.revision + 1, self.head.recorded);
        let new = Self::new(definition, execute_at, now);
        self.head = Head { revision, recorded, ..new.head };
        self.body = new.body;
        self.is_body_new = true;
    }

    /// How the delivery of a claimed timer ended. Says whether it was allowed.
    pub fn end_claim(&mut self, next: &Next) -> bool {
        let Some(status) = self.head.status.after(next.event()) else { return false };
        self.head.status = status;
        self.head.held = None;
        let head = &mut self.head;
        match next {
            Next::Completed { at } => head.finish(*at, None),
            Next::Failed { at, error } => head.finish(*at, Some(error.clone())),
            Next::GivenUp { at, error } => {
                head.attempt = (head.attempt - 1).max(0);
                head.finish(*at, Some(error.clone()));
            }
            Next::Expired { at, error, is_called } => {
                head.attempt = (head.attempt - i64::from(!is_called)).max(0);
                head.finish(*at, Some(error.clone()));
            }
            Next::Pending { at, attempt, error } => head.wait(*at, i64::from(*attempt), error.clone()),
            Next::Again { at } => {
                head.execute_at = at.as_micros();
                head.revision += 1;
                head.wait(*at, 0, None);
            }
        }
        true
    }
}
