use std::time::Duration;

use domain::{Next, Shard, Span, Status};
use store::{Claimed, Epoch, NodeId, Settlement, ShardLease};

use super::{Books, Check, Ending, Ledger, Taken, calls::Reply, short};

/// A node whose clock is farther off owns nothing; less than that is allowed, and so are the time by which a timer is claimed ahead and
/// a moment for the way.
const EARLY_MAX: Span = Span::from_millis(520);
/// How late a claim may be when nothing is wrong: shards change hands while nodes start, and a sweep takes a second.
const LATE_MAX: Span = Span::from_millis(1_500);
/// What a node does for so long after its clock was set may have been decided before that was noticed: a lease, a store that
/// took its time, and a pause.
pub const AFTER_A_STEP: Duration = Duration::from_secs(50);

impl Ledger {
    pub fn claimed(&self, node: NodeId, claimed: &Claimed) {
        let (clock, now, id) = (self.clock, self.now(), claimed.entry.id);
        let shard = id.shard(self.shards);
        let mut books = self.books();
        let by = short(node);
        let (attempt, epoch) = (claimed.attempt, claimed.shard_lease.epoch.0);
        books.write(clock, Some(id), format_args!("claimed by {by} in epoch {epoch}, attempt {attempt}"));
        let was_set = books.clocks.get(&node).is_some_and(|clock| clock.was_set_within(AFTER_A_STEP));
        let is_owner = books.is_held_by(node, claimed.shard_lease, shard);
        let Some(life) = books.timers.get_mut(&id) else {
            return books.violated(clock, Check::Ghost, Some(id), format_args!("claimed, though it was never made"));
        };
        if let Some(open) = life.open() {
            let (is_same, other) = (open.token == claimed.token && open.node == node, short(open.node));
            if !is_same {
                books.violated(clock, Check::Claim, Some(id), format_args!("claimed by {by} while {other} holds it"));
            }
            return;
        }
        let revision = claimed.timer.as_ref().map_or(0, |timer| timer.revision);
        let (status, expected) = (life.status, (life.revision, life.attempt + 1, life.at));
        let late = now.since(life.at.max(life.touched));
        life.status = Status::Executing;
        life.claims.push(Taken {
            token: claimed.token,
            node,
            shard_lease: claimed.shard_lease,
            attempt,
            revision,
            due: claimed.entry.at,
            since: now,
            call: None,
            ending: None,
        });
        if status != Status::Pending {
            let check = if status == Status::Canceled { Check::Ghost } else { Check::Claim };
            books.violated(clock, check, Some(id), format_args!("claimed while it was {status}"));
        }
        if expected != (revision, attempt, claimed.entry.at) {
            let got = (revision, attempt, claimed.entry.at);
            books.violated(clock, Check::Ghost, Some(id), format_args!("claimed as {got:?}, which is not {expected:?}"));
        }
        if self.is_free_of_faults && late > LATE_MAX {
            books.violated(clock, Check::Stuck, Some(id), format_args!("claimed {late} late, and nothing was wrong"));
        }
        if !is_owner {
            books.violated(clock, Check::Claim, Some(id), format_args!("claimed by {by}, which does not hold its shard"));
        }
        if claimed.entry.at > now.saturating_add(EARLY_MAX) && !was_set {
            books.violated(clock, Check::Early, Some(id), format_args!("claimed by {by} when due at {}", claimed.entry.at));
        }
    }

    pub fn settled(&self, node: NodeId, settlement: &Settlement, counted: bool) {
        let (clock, now, id) = (self.clock, self.now(), settlement.entry.id);
        let shard = id.shard(self.shards);
        let mut books = self.books();
        let by = short(node);
        if !counted {
            books.metrics.fenced += 1;
            return books.write(clock, Some(id), format_args!("a result of {by} does not count"));
        }
        let next = settlement.next.clone();
        books.write(clock, Some(id), format_args!("settled by {by}: {next:?}"));
        let is_owner = books.is_held_by(node, settlement.shard_lease, shard);
        let Some(life) = books.timers.get_mut(&id) else {
            return books.violated(clock, Check::Ghost, Some(id), format_args!("settled, though it was never made"));
        };
        let Some(open) = life.open() else {
            return books.violated(clock, Check::Claim, Some(id), format_args!("settled by {by} without a claim"));
        };
        let is_this_claim = open.token == settlement.token && open.due == settlement.entry.at;
        let is_its_own = open.node == node && open.shard_lease == settlement.shard_lease;
        let (holder, since, attempt, call) = (open.node, open.since, open.attempt, open.call);
        open.ending = Some(if is_its_own { Ending::Settled } else { Ending::TakenOver });
        life.apply(&next);
        life.touched = now;
        if !is_this_claim {
            let what = format_args!("a result of {by} for another claim counted instead of {}'s", short(holder));
            books.violated(clock, Check::Claim, Some(id), what);
        }
        if is_its_own {
            let reply = call.and_then(|call| books.calls.get(call)).map(|call| call.reply);
            if !agrees(&next, attempt, reply) {
                let what = format_args!("{by} recorded {next:?}, but the receiver's answer was {reply:?}");
                books.violated(clock, Check::State, Some(id), what);
            }
            return;
        }
        books.metrics.taken_over += 1;
        if !is_owner {
            books.violated(clock, Check::Claim, Some(id), format_args!("settled by {by}, which does not hold its shard"));
        }
        let is_explained = self.is_store_faulty || books.troubled.contains(&holder);
        if !books.was_dead_since(holder, since, now) || !is_explained {
            let what = format_args!("{by} took it over from {}, which lived and was well", short(holder));
            books.violated(clock, Check::Duplicate, Some(id), what);
        }
    }
}

impl super::Life {
    fn apply(&mut self, next: &Next) {
        match next {
            Next::Completed { .. } => self.status = Status::Completed,
            Next::Failed { .. } | Next::GivenUp { .. } => self.status = Status::Failed,
            Next::Expired { is_called, .. } => {
                self.status = Status::Expired;
                self.attempt = self.claims.last().map_or(0, |taken| taken.attempt - u32::from(!is_called));
            }
            Next::Pending { at, attempt, .. } => self.wait(*at, *attempt),
            Next::Again { at } => {
                self.wait(*at, 0);
                self.revision += 1;
                self.execute_at = *at;
            }
        }
    }
}

impl Books {
    /// Whether the shard lease is the current one of the shard, and this node's.
    fn is_held_by(&self, node: NodeId, shard_lease: ShardLease, shard: Shard) -> bool {
        let current: Option<Epoch> = self.owners.get(&shard).map(|(epoch, _)| *epoch);
        shard_lease.shard == shard && current == Some(shard_lease.epoch) && self.holders.get(&shard_lease) == Some(&node)
    }
}

/// Whether what a node records of its own claim is what it was told.
fn agrees(next: &Next, claimed: u32, reply: Option<Reply>) -> bool {
    match (next, reply) {
        (Next::Completed { .. }, reply) => reply == Some(Reply::Delivered),
        (Next::Again { .. }, reply) => reply == Some(Reply::Rescheduled),
        (Next::Failed { .. }, reply) => reply == Some(Reply::Failed),
        (Next::GivenUp { .. } | Next::Expired { is_called: false, .. }, reply) => reply.is_none(),
        (Next::Expired { .. }, reply) => matches!(reply, Some(Reply::Failed | Reply::Rescheduled)),
        (Next::Pending { attempt, .. }, None) => *attempt + 1 == claimed,
        (Next::Pending { attempt, .. }, Some(reply)) => *attempt == claimed && reply == Reply::Failed,
    }
}
