use std::collections::VecDeque;

use domain::{Attempt, Definition, Event, Missed, Next, Pause, Status, Timer, Timestamp, limits};
use store::{BulkStep, Claim, ClaimToken, Claimed, DueEntry, Epoch, Settlement, ShardLease, Terms, Unreadable};

/// One timer with what only the scheduler sees of it.
pub(super) struct Row {
    pub(super) timer: Timer,
    /// When its next attempt is due.
    pub(super) at: Timestamp,
    /// Its claim: there while it is executing, and only then.
    pub(super) held: Option<Held>,
    pub(super) is_spoiled: bool,
    pub(super) is_summary_spoiled: bool,
    pub(super) are_options_spoiled: bool,
    pub(super) attempts: VecDeque<Attempt>,
    /// How many were recorded, those that are kept no more included.
    pub(super) attempts_recorded: i64,
}

#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) token: ClaimToken,
    pub(super) epoch: Epoch,
    pub(super) lease_until: Timestamp,
}

impl Row {
    pub(super) fn new(definition: Definition, execute_at: Timestamp, created_at: Timestamp) -> Self {
        let timer = Timer {
            definition,
            execute_at,
            status: Status::Pending,
            attempt: 0,
            last_error: None,
            executed_at: None,
            created_at,
            updated_at: created_at,
            revision: 1,
            pause: None,
        };
        Self {
            timer,
            at: execute_at,
            held: None,
            is_spoiled: false,
            is_summary_spoiled: false,
            are_options_spoiled: false,
            attempts: VecDeque::new(),
            attempts_recorded: 0,
        }
    }

    pub(super) fn entry(&self) -> DueEntry {
        DueEntry { at: self.at, id: self.timer.id(), destination: self.timer.definition.destination() }
    }

    pub(super) fn read(&self) -> Result<Timer, Unreadable> {
        if self.is_spoiled { Err(Unreadable("the timer was spoiled".to_owned())) } else { Ok(self.timer.clone()) }
    }

    /// The attempt that was recorded as this one, counted from one, if it is kept.
    pub(super) fn attempt_at(&self, seq: i64) -> Option<Attempt> {
        let from_the_end = usize::try_from(self.attempts_recorded - seq).ok()?;
        self.attempts.get(self.attempts.len().checked_sub(1 + from_the_end)?).cloned()
    }

    /// The claim as its owner sees it, or the node that settles it for an owner that is gone.
    pub(super) fn claimed(&self, shard_lease: ShardLease) -> Option<Claimed> {
        let Held { token, .. } = self.held?;
        Some(Claimed { entry: self.entry(), shard_lease, token, attempt: self.timer.attempt, timer: self.read() })
    }

    /// New content and a new time for a pending or paused timer; its attempts start over.
    pub(super) fn change(&mut self, definition: Definition, execute_at: Timestamp, now: Timestamp) {
        self.timer.definition = definition;
        self.timer.revision += 1;
        self.timer.updated_at = now;
        self.timer.execute_at = execute_at;
        self.wait(execute_at, 0, None);
    }

    /// New content for a pending or paused timer. Only another time starts its attempts over.
    pub(super) fn update(&mut self, definition: Definition, execute_at: Timestamp, now: Timestamp) {
        let (at, attempt, last_error) = (self.at, self.timer.attempt, self.timer.last_error.clone());
        let is_moved = execute_at != self.timer.execute_at;
        self.change(definition, execute_at, now);
        if !is_moved {
            let at = if self.timer.status == Status::Pending { self.timer.next_look(at) } else { at };
            self.wait(at, attempt, last_error);
        }
    }

    /// Back to pending for the same due time, to be tried now.
    pub(super) fn reopen(&mut self, at: Timestamp, now: Timestamp) {
        self.timer.revision += 1;
        self.timer.updated_at = now;
        self.timer.executed_at = None;
        self.wait(at, 0, None);
    }

    /// A new life after the end. What is remembered of earlier attempts stays.
    pub(super) fn revive(&mut self, definition: Definition, execute_at: Timestamp, now: Timestamp) {
        let (revision, attempts) = (self.timer.revision + 1, std::mem::take(&mut self.attempts));
        *self = Self::new(definition, execute_at, now);
        self.timer.revision = revision;
        self.attempts = attempts;
    }

    /// Out of what is due.
    pub(super) fn pause(&mut self, note: Option<&str>, now: Timestamp) {
        self.timer.status = Status::Paused;
        self.timer.pause = Some(Pause { at: now, note: note.map(str::to_owned) });
        self.timer.revision += 1;
        self.timer.updated_at = now;
    }

    /// Back into what is due, or to its end.
    pub(super) fn resume(&mut self, missed: Missed, now: Timestamp) {
        match store::resume(self.at, missed, Some(Terms::of(&self.timer.definition.options)), now) {
            BulkStep::End { status, error } => {
                self.timer.pause = None;
                self.timer.updated_at = now;
                self.timer.status = status;
                self.timer.last_error = error.map(str::to_owned);
            }
            BulkStep::LetExpire { at, error } => self.let_expire(at, error, now),
            _ => self.go_on(self.at.max(now), now),
        }
    }

    /// Back into what is due: the next attempt is due then.
    pub(super) fn go_on(&mut self, at: Timestamp, now: Timestamp) {
        self.timer.status = Status::Pending;
        self.timer.pause = None;
        self.timer.revision += 1;
        self.timer.updated_at = now;
        self.at = at;
    }

    /// Into what is due, to be ended by its claim.
    pub(super) fn let_expire(&mut self, at: Timestamp, error: &str, now: Timestamp) {
        self.go_on(at, now);
        self.timer.last_error = Some(error.to_owned());
    }

    fn wait(&mut self, at: Timestamp, attempt: u32, last_error: Option<String>) {
        self.at = at;
        self.timer.attempt = attempt;
        self.timer.last_error = last_error;
    }

    /// Whether the timer is now held under the claim's token: taken by this call, or by an earlier one of the same token.
    pub(super) fn claim(&mut self, claim: &Claim, shard_lease: ShardLease, now: Timestamp) -> bool {
        if let Some(held) = self.held {
            return held.token == claim.token && held.epoch == shard_lease.epoch;
        }
        let Some(executing) = self.timer.status.after(Event::Claim) else {
            return false;
        };
        self.timer.status = executing;
        self.timer.attempt += 1;
        self.held = Some(Held { token: claim.token, epoch: shard_lease.epoch, lease_until: now.saturating_add(claim.lease) });
        true
    }

    pub(super) fn is_claimed_under(&self, shard_lease: ShardLease) -> bool {
        self.held.is_some_and(|held| held.epoch == shard_lease.epoch)
    }

    /// Whether the settlement counted: its claim is the one that stands.
    pub(super) fn settle(&mut self, settlement: &Settlement) -> bool {
        if self.held.is_none_or(|held| held.token != settlement.token) || self.at != settlement.entry.at {
            return false;
        }
        let Some(status) = self.timer.status.after(settlement.next.event()) else {
            return false;
        };
        self.timer.status = status;
        self.held = None;
        if let Some(attempt) = &settlement.attempt {
            self.attempts.push_back(attempt.clone());
            self.attempts_recorded += 1;
            let excess = self.attempts.len().saturating_sub(limits::ATTEMPTS_KEPT);
            self.attempts.drain(..excess);
        }
        match settlement.next.clone() {
            Next::Completed { at } => self.finish(at, None),
            Next::Failed { at, error } => self.finish(at, Some(error)),
            Next::GivenUp { at, error } => {
                self.timer.attempt = self.timer.attempt.saturating_sub(1);
                self.finish(at, Some(error));
            }
            Next::Expired { at, error, is_called } => {
                self.timer.attempt = self.timer.attempt.saturating_sub(u32::from(!is_called));
                self.finish(at, Some(error));
            }
            Next::Pending { at, attempt, error } => self.wait(at, attempt, error),
            Next::Again { at } => {
                self.timer.execute_at = at;
                self.timer.revision += 1;
                self.wait(at, 0, None);
            }
        }
        true
    }

    fn finish(&mut self, at: Timestamp, last_error: Option<String>) {
        self.timer.executed_at = Some(at);
        self.timer.updated_at = at;
        self.timer.last_error = last_error;
    }
}
