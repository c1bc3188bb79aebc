use domain::{Delivery, Timer, TimerId, Timestamp};
use store::NodeId;

use super::{Check, Ending, Ledger, claims::AFTER_A_STEP, short};

/// A call as its receiver saw it.
#[derive(Debug, Clone)]
pub struct Call {
    pub id: TimerId,
    pub node: NodeId,
    pub revision: u32,
    pub reply: Reply,
    pub is_answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Delivered,
    Rescheduled,
    Failed,
}

/// How a call came about.
pub struct Arrival<'a> {
    pub node: NodeId,
    /// What the node's clock says.
    pub node_now: Timestamp,
    /// Whether the node was stopped between its last look at its lease and the call.
    pub was_held_up: bool,
    pub timer: &'a Timer,
    pub attempt: u32,
}

impl Ledger {
    /// How often this timer was called.
    pub fn calls_of(&self, id: TimerId) -> usize {
        self.books().calls.iter().filter(|call| call.id == id).count()
    }

    /// A call arrives, and this will be its answer.
    pub fn called(&self, arrival: &Arrival<'_>, reply: Reply) -> usize {
        let &Arrival { node, node_now, was_held_up, timer, attempt } = arrival;
        let (clock, now, id, revision) = (self.clock, self.now(), timer.id(), timer.revision);
        let mut books = self.books();
        let index = books.calls.len();
        let by = short(node);
        books.write(clock, Some(id), format_args!("CALLED by {by}: revision {revision}, attempt {attempt}; {reply:?}"));
        books.calls.push(Call { id, node, revision, reply, is_answered: false });
        let is_alive = books.is_alive(node, now);
        let was_set = books.clocks.get(&node).is_some_and(|clock| clock.was_set_within(AFTER_A_STEP));
        let Some(life) = books.timers.get_mut(&id) else {
            books.violated(clock, Check::Ghost, Some(id), format_args!("called, though it was never made"));
            return index;
        };
        let delivery = life.delivery;
        let matches = |taken: &&mut super::Taken| (taken.node, taken.attempt, taken.revision) == (node, attempt, revision);
        let Some(taken) = life.claims.iter_mut().rev().find(matches) else {
            books.violated(clock, Check::Ghost, Some(id), format_args!("called by {by} without a claim"));
            return index;
        };
        let (repeated, ending, due) = (taken.call.replace(index), taken.ending, taken.due);
        let earlier = self::earlier(life, revision, index);
        if repeated.is_some() {
            books.violated(clock, Check::Duplicate, Some(id), format_args!("attempt {attempt} was made twice"));
        }
        if !was_held_up && (!is_alive || ending.is_some()) {
            books.violated(clock, Check::Lease, Some(id), format_args!("called by {by} on a lease that had run out"));
        }
        if node_now < due && !was_set {
            books.violated(clock, Check::Early, Some(id), format_args!("called by {by} at {node_now} by its clock, due {due}"));
        }
        if timer.expires_at().is_some_and(|expires_at| node_now >= expires_at) && !was_held_up && !was_set {
            books.violated(clock, Check::Expired, Some(id), format_args!("called by {by} at {node_now} by its clock"));
        }
        for (other, other_ending) in earlier {
            let call = books.calls[other].clone();
            let is_open = !call.is_answered || call.reply != Reply::Failed;
            let is_explained = ending == Some(Ending::TakenOver) || other_ending == Some(Ending::TakenOver);
            books.metrics.repeated += usize::from(is_open);
            if is_open && (!is_explained || delivery == Delivery::AtMostOnce) {
                let what = format_args!("called by {by} after {} had called it: {:?}", short(call.node), call.reply);
                books.violated(clock, Check::Duplicate, Some(id), what);
            }
        }
        index
    }

    pub fn answered(&self, call: usize) {
        let mut books = self.books();
        if let Some(call) = books.calls.get_mut(call) {
            call.is_answered = true;
        }
    }
}

/// Calls of the same version, with what became of their claims.
fn earlier(life: &super::Life, revision: u32, than: usize) -> Vec<(usize, Option<Ending>)> {
    let of_version = life.claims.iter().filter(|taken| taken.revision == revision);
    of_version.filter_map(|taken| Some((taken.call?, taken.ending))).filter(|(call, _)| *call != than).collect()
}
