//! What each call does to one timer: decided on what was read, written only if that still stands.

use domain::{Content, Event, Missed, NewTimer, RequestedTime, Resolution, Status, Timer, Timestamp, resolve};
use store::{
    BulkAction, BulkChange, BulkItem, BulkStep, Changed, Claim, Claimed, Created, DueEntry, Happened, Settlement, ShardLease,
    Standing, StoreResult, is_prompt, is_resumable,
};

use crate::{held::Held, json::corrupt, timer_row::TimerRow};

/// What is to be done with a row, and what the call answers if that is done.
pub enum Step<T> {
    Leave(T),
    Put(Box<TimerRow>, T),
    Remove(Box<TimerRow>, T),
}

impl TimerRow {
    // ── What is recorded of it ─────────────────────────────────────────────────────────────────────────────────

    fn note_created(&mut self, clock: Timestamp) {
        let at = Timestamp::from_micros(self.head.created_at);
        if !is_prompt(at, clock) {
            self.events.push(Happened::Created { at });
        }
    }

    fn note_changed(&mut self) {
        self.events.push(Happened::Changed { revision: self.revision() });
    }

    fn note_finished(&mut self, clock: Timestamp) {
        let (at, status) = (Timestamp::from_micros(self.head.updated_at), self.head.status);
        if !is_prompt(at, clock) {
            self.events.push(Happened::Finished { at, status });
        }
    }

    /// The timer, as it ended, is about to get a new life.
    fn note_ended(&mut self) {
        self.events.push(Happened::Ended { at: Timestamp::from_micros(self.head.updated_at), status: self.head.status });
    }

    /// The timer is about to be created anew.
    fn note_began(&mut self, clock: Timestamp) {
        let at = Timestamp::from_micros(self.head.created_at);
        if is_resumable(at, clock) {
            self.events.push(Happened::Began { at });
        }
    }

    // ── How it changes ─────────────────────────────────────────────────────────────────────────────────────────

    /// A new time for a pending or paused timer: its attempts start over.
    fn move_to(&mut self, execute_at: Timestamp, now: Timestamp) {
        self.head.revision += 1;
        self.head.updated_at = now.as_micros();
        self.head.execute_at = execute_at.as_micros();
        self.head.wait(execute_at, 0, None);
    }

    fn update(&mut self, changed: &Timer, now: Timestamp) {
        let (at, attempt, last_error) = (self.at(), self.head.attempt, self.head.last_error.clone());
        let is_moved = changed.execute_at.as_micros() != self.head.execute_at;
        self.define(&changed.definition);
        self.move_to(changed.execute_at, now);
        if !is_moved {
            let at = if self.head.status == Status::Pending { changed.next_look(at) } else { at };
            self.head.wait(at, attempt, last_error);
        }
    }

    fn end(&mut self, status: Status, error: Option<&str>, now: Timestamp, clock: Timestamp) {
        self.head.status = status;
        self.head.paused_at = None;
        self.head.pause_note = None;
        self.head.updated_at = now.as_micros();
        if let Some(error) = error {
            self.head.last_error = Some(error.to_owned());
        }
        self.note_finished(clock);
    }

    fn reopen(&mut self, at: Timestamp, now: Timestamp) {
        self.note_ended();
        self.head.status = Status::Pending;
        self.head.revision += 1;
        self.head.updated_at = now.as_micros();
        self.head.executed_at = None;
        self.head.wait(at, 0, None);
        self.note_changed();
    }

    fn revive(&mut self, definition: &domain::Definition, execute_at: Timestamp, now: Timestamp, clock: Timestamp) {
        self.note_ended();
        self.note_began(clock);
        self.begin_anew(definition, execute_at, now);
        self.note_created(clock);
        self.note_changed();
    }

    fn pause(&mut self, note: Option<&str>, now: Timestamp) {
        self.head.status = Status::Paused;
        self.head.paused_at = Some(now.as_micros());
        self.head.pause_note = note.map(str::to_owned);
        self.head.revision += 1;
        self.head.updated_at = now.as_micros();
    }

    fn go_on(&mut self, at: Timestamp, now: Timestamp) {
        self.head.status = Status::Pending;
        self.head.paused_at = None;
        self.head.pause_note = None;
        self.head.revision += 1;
        self.head.updated_at = now.as_micros();
        self.head.at = at.as_micros();
    }

    /// Into what is due, to be ended by its claim.
    fn let_expire(&mut self, at: Timestamp, error: &str, now: Timestamp) {
        self.go_on(at, now);
        self.head.last_error = Some(error.to_owned());
    }

    fn replaced(self) -> StoreResult<Step<Created>> {
        let timer = self.timer_or_corrupt()?;
        Ok(Step::Put(Box::new(self), Created::Replaced(timer)))
    }

    fn done(self) -> StoreResult<Step<Changed>> {
        let timer = self.timer_or_corrupt()?;
        Ok(Step::Put(Box::new(self), Changed::Done(timer)))
    }
}

pub fn create(new: &NewTimer, met: Option<TimerRow>, clock: Timestamp) -> StoreResult<Step<Created>> {
    let Some(mut row) = met else {
        let mut row = TimerRow::new(&new.definition, new.execute_at, new.created_at);
        row.note_created(clock);
        let timer = row.timer_or_corrupt()?;
        return Ok(Step::Put(Box::new(row), Created::Created(timer)));
    };
    let wanted = new.definition.content();
    // Through its stored form and back, so that like is compared with like.
    let asked = wanted.asked.and_then(|asked| RequestedTime::from_stored(&asked.to_stored()).ok());
    let wanted = Content { asked, ..wanted };
    let stored = row.stored().map_err(corrupt)?;
    match resolve(new.on_conflict, stored.status, stored.content(row.fingerprint()), wanted, stored.times(new)) {
        Resolution::Existing => Ok(Step::Leave(Created::Existing(row.timer_or_corrupt()?))),
        Resolution::Conflict => Ok(Step::Leave(Created::Conflict(row.timer_or_corrupt()?))),
        Resolution::PastExpiry => Ok(Step::Leave(Created::PastExpiry(row.timer_or_corrupt()?))),
        Resolution::Overwrite => {
            row.define(&new.definition);
            row.move_to(new.execute_at, new.created_at);
            row.note_changed();
            row.replaced()
        }
        Resolution::Move(at) => {
            row.ask(stored.moved_to(&new.definition.asked).map_err(corrupt)?);
            row.move_to(at, new.created_at);
            row.note_changed();
            row.replaced()
        }
        Resolution::Revive => {
            row.revive(&new.definition, new.execute_at, new.created_at, clock);
            row.replaced()
        }
    }
}

/// Changes a timer whose status allows `event`, if it has the expected revision.
pub fn change(
    met: Option<TimerRow>,
    event: Event,
    expected: Option<u32>,
    change: impl FnOnce(&mut TimerRow),
) -> StoreResult<Step<Changed>> {
    let Some(mut row) = met else { return Ok(Step::Leave(Changed::NotFound)) };
    if row.head.status.after(event).is_none() {
        return Ok(Step::Leave(Changed::WrongStatus(row.timer_or_corrupt()?)));
    }
    if expected.is_some_and(|expected| expected != row.revision()) {
        return Ok(Step::Leave(Changed::StaleRevision(row.timer_or_corrupt()?)));
    }
    change(&mut row);
    row.done()
}

pub fn update(changed: &Timer, met: Option<TimerRow>, now: Timestamp) -> StoreResult<Step<Changed>> {
    change(met, Event::Update, Some(changed.revision), |row| {
        row.update(changed, now);
        row.note_changed();
    })
}

pub fn cancel(met: Option<TimerRow>, expected: Option<u32>, now: Timestamp, clock: Timestamp) -> StoreResult<Step<Changed>> {
    change(met, Event::Cancel, expected, |row| row.end(Status::Canceled, None, now, clock))
}

pub fn reopen(met: Option<TimerRow>, expected: Option<u32>, now: Timestamp) -> StoreResult<Step<Changed>> {
    change(met, Event::Reopen, expected, |row| row.reopen(now, now))
}

pub fn revive(changed: &Timer, met: Option<TimerRow>, now: Timestamp, clock: Timestamp) -> StoreResult<Step<Changed>> {
    change(met, Event::Revive, Some(changed.revision), |row| {
        row.revive(&changed.definition, changed.execute_at, now, clock);
    })
}

pub fn pause(met: Option<TimerRow>, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> StoreResult<Step<Changed>> {
    change(met, Event::Pause, expected, |row| {
        row.pause(note, now);
        row.note_changed();
    })
}

pub fn resume(
    met: Option<TimerRow>,
    expected: Option<u32>,
    missed: Missed,
    now: Timestamp,
    clock: Timestamp,
) -> StoreResult<Step<Changed>> {
    change(met, Event::Resume, expected, |row| match store::resume(row.at(), missed, row.terms(), now) {
        BulkStep::End { status, error } => row.end(status, error, now, clock),
        BulkStep::LetExpire { at, error } => {
            row.let_expire(at, error, now);
            row.note_changed();
        }
        _ => {
            row.go_on(row.at().max(now), now);
            row.note_changed();
        }
    })
}

/// Whether the status or the revision of a timer that is canceled among many allows it is not told.
pub fn cancel_one_of_many(met: Option<TimerRow>, now: Timestamp, clock: Timestamp) -> Step<bool> {
    match met {
        Some(mut row) if row.head.status.after(Event::Cancel).is_some() => {
            row.end(Status::Canceled, None, now, clock);
            Step::Put(Box::new(row), true)
        }
        _ => Step::Leave(false),
    }
}

/// A timer that a claim has taken, or that an earlier call with its token took.
pub struct Taken {
    pub claimed: Claimed,
    /// Taken by this very call: to be handed out only once the epoch is known to stand.
    pub is_new: bool,
}

/// `is_overtaken` says that the shard lease is known to have ended: nothing new is claimed under it.
///
/// A call may be the repetition of one whose outcome is unknown, and whose writes may still be under way. Whatever this call
/// answers must stay true once they arrive. So it writes the row also where nothing is to be changed: with another version, on which
/// the conditions of those writes fail.
pub fn claim(
    claim: &Claim,
    entry: DueEntry,
    shard_lease: ShardLease,
    is_overtaken: bool,
    met: Option<TimerRow>,
) -> Step<Option<Taken>> {
    let Some(mut row) = met.filter(|row| row.at() == entry.at) else { return Step::Leave(None) };
    if let Some(held) = row.head.held {
        let is_repeated = held.token == claim.token.0 && held.epoch == shard_lease.epoch.0;
        return match row.claimed(shard_lease).filter(|_| is_repeated) {
            // The earlier call may be about to take it back.
            Some(claimed) => Step::Put(Box::new(row), Some(Taken { claimed, is_new: false })),
            None => Step::Leave(None),
        };
    }
    let Some(executing) = row.head.status.after(Event::Claim) else { return Step::Leave(None) };
    if is_overtaken {
        // The earlier call may be about to claim it, and no call would know of that claim.
        return Step::Put(Box::new(row), None);
    }
    row.head.status = executing;
    row.head.attempt += 1;
    row.head.held = Some(Held { token: claim.token.0, epoch: shard_lease.epoch.0, lease: claim.lease.as_micros() });
    match row.claimed(shard_lease) {
        Some(claimed) => Step::Put(Box::new(row), Some(Taken { claimed, is_new: true })),
        None => Step::Leave(None),
    }
}

/// Undoes a claim that was made after its epoch had ended: the timer is pending again, as if it had never been claimed.
pub fn take_back(claimed: &Claimed, met: Option<TimerRow>) -> Step<()> {
    let stands = |row: &TimerRow| {
        row.head.held.is_some_and(|held| held.token == claimed.token.0 && held.epoch == claimed.shard_lease.epoch.0)
    };
    match met.filter(stands) {
        Some(mut row) => {
            row.head.held = None;
            row.head.status = Status::Pending;
            row.head.attempt = (row.head.attempt - 1).max(0);
            Step::Put(Box::new(row), ())
        }
        None => Step::Leave(()),
    }
}

/// `is_current` says whether the shard lease of the settlement is the current one of its shard.
pub fn settle(settlement: &Settlement, is_current: bool, met: Option<TimerRow>, clock: Timestamp) -> Step<bool> {
    let Some(mut row) = met else { return Step::Leave(false) };
    let Some(held) = row.head.held else { return Step::Leave(false) };
    let is_its_own = held.epoch == settlement.shard_lease.epoch.0;
    if held.token != settlement.token.0 || row.at() != settlement.entry.at || !(is_current || is_its_own) {
        return Step::Leave(false);
    }
    let revision = row.head.revision;
    if !row.end_claim(&settlement.next) {
        return Step::Leave(false);
    }
    if let Some(attempt) = &settlement.attempt {
        row.remember(attempt);
        row.events.push(Happened::Attempted { seq: row.head.recorded });
    }
    if row.head.status.is_finished() {
        row.note_finished(clock);
    }
    if row.head.revision != revision {
        row.note_changed();
    }
    Step::Put(Box::new(row), true)
}

/// One timer of a bulk change. An operation that meets a timer which it has changed already leaves it, and says so.
pub fn bulk(
    action: &BulkAction,
    item: &BulkItem,
    operation: Option<u128>,
    met: Option<TimerRow>,
    now: Timestamp,
    clock: Timestamp,
) -> Step<BulkChange> {
    let Some(mut row) = met else { return Step::Leave(BulkChange::Skipped) };
    if operation.is_some_and(|operation| row.head.operations.contains(&operation)) {
        return Step::Leave(BulkChange::Changed);
    }
    let status = row.head.status;
    let standing = Standing {
        status,
        revision: row.revision(),
        at: (!status.is_finished()).then(|| row.at()),
        execute_at: Timestamp::from_micros(row.head.execute_at),
        terms: if action.asks_for_terms() { row.terms() } else { None },
    };
    let Some(step) = action.step(item, &standing, now) else {
        return Step::Leave(action.passed_by(item, &standing, now));
    };
    if let Some(operation) = operation {
        row.note_operation(operation);
    }
    match step {
        BulkStep::End { status, error } => {
            row.end(status, error, now, clock);
            return Step::Put(Box::new(row), BulkChange::Changed);
        }
        BulkStep::Remove => return Step::Remove(Box::new(row), BulkChange::Changed),
        BulkStep::Reopen { at } => row.reopen(at, now),
        BulkStep::LetExpire { at, error } => {
            row.let_expire(at, error, now);
            row.note_changed();
        }
        BulkStep::Move { to } => {
            row.move_to(to, now);
            row.note_changed();
        }
        BulkStep::Pause => {
            row.pause(action.note(), now);
            row.note_changed();
        }
        BulkStep::Resume { at } => {
            row.go_on(at, now);
            row.note_changed();
        }
    }
    let change = if row.head.status == Status::Pending { BulkChange::Due(row.entry()) } else { BulkChange::Changed };
    Step::Put(Box::new(row), change)
}
