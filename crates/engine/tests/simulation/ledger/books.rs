use domain::{Event, Status, Timer, Timestamp};
use store::{Changed, Created, NodeId};

use super::{Check, Ledger, Life, Taken, short};

impl Life {
    fn new(timer: &Timer, now: Timestamp) -> Self {
        Self {
            status: timer.status,
            revision: timer.revision,
            execute_at: timer.execute_at,
            touched: now,
            at: timer.execute_at,
            attempt: timer.attempt,
            delivery: timer.definition.delivery,
            claims: Vec::new(),
        }
    }

    /// The claim that stands.
    pub fn open(&mut self) -> Option<&mut Taken> {
        self.claims.last_mut().filter(|taken| taken.ending.is_none())
    }

    pub(super) fn wait(&mut self, at: Timestamp, attempt: u32) {
        (self.status, self.at, self.attempt) = (Status::Pending, at, attempt);
    }
}

impl Ledger {
    pub fn created(&self, node: NodeId, created: &Created) {
        let timer = created.timer();
        let id = timer.id();
        match created {
            Created::Created(_) => {
                self.write(Some(id), format_args!("created by {}, due {}", short(node), timer.execute_at));
                let before = self.books().timers.insert(id, Life::new(timer, self.now()));
                if let Some(before) = before.filter(|before| !before.status.is_finished()) {
                    self.violated(Check::State, Some(id), format_args!("made anew while it was {}", before.status));
                }
            }
            Created::Existing(_) | Created::Conflict(_) | Created::PastExpiry(_) => {
                self.write(Some(id), format_args!("is there already"))
            }
            Created::Replaced(_) => {
                self.violated(Check::State, Some(id), format_args!("replaced, though no client asked for that"));
            }
        }
    }

    /// An update, a cancel or a retry.
    pub fn changed(&self, node: NodeId, what: &str, changed: &Changed) {
        let Changed::Done(timer) = changed else { return };
        let id = timer.id();
        self.write(Some(id), format_args!("{what} by {}: revision {}, due {}", short(node), timer.revision, timer.execute_at));
        let (clock, now) = (self.clock, self.now());
        let mut books = self.books();
        let Some(life) = books.timers.get_mut(&id) else {
            return books.violated(clock, Check::Ghost, Some(id), format_args!("{what}, though it was never made"));
        };
        let met = life.status;
        (life.status, life.touched) = (timer.status, now);
        if what == "reopened" {
            // The store was told the time by the node.
            life.wait(timer.updated_at, 0);
        } else if timer.execute_at != life.execute_at {
            life.wait(timer.execute_at, 0);
            life.status = timer.status;
        }
        let is_rising = timer.revision > life.revision || (what == "canceled" && timer.revision == life.revision);
        (life.revision, life.execute_at) = (timer.revision, timer.execute_at);
        let is_allowed = if what == "reopened" { met.after(Event::Reopen).is_some() } else { met == Status::Pending };
        if !is_allowed {
            books.violated(clock, Check::State, Some(id), format_args!("{what} while it was {met} at {now}"));
        } else if !is_rising {
            books.violated(clock, Check::State, Some(id), format_args!("{what} without a new revision"));
        }
    }
}
