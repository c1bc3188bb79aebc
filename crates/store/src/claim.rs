use domain::{Attempt, Destination, Next, Shard, Span, Timer, TimerId, Timestamp};

/// A pending timer, as light as a million of them must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DueEntry {
    /// When its next attempt is due: `execute_at`, or later after a failed attempt.
    pub at: Timestamp,
    pub id: TimerId,
    pub destination: Destination,
}

/// Up to where a shard has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardCursor {
    pub shard: Shard,
    /// The last entry that was read; `None` to begin with the oldest.
    pub after: Option<(Timestamp, TimerId)>,
}

/// One start of one process. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u128);

/// The fencing token of a shard lease: it rises each time that the shard gets an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

/// A shard in the hands of a node. Everything the node writes for the shard carries it; the epoch is the fencing token. Once
/// another node has taken the shard, nothing new can be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardLease {
    pub shard: Shard,
    pub epoch: Epoch,
}

/// Names one call of `claim`. Chosen by the caller at random, never zero and never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimToken(pub i64);

/// In whose name, and for how long, timers are claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub token: ClaimToken,
    pub shard_leases: Vec<ShardLease>,
    /// After this, by the database's clock, another node may settle them.
    pub lease: Span,
    /// What happens to a timer whose row another transaction has locked.
    pub on_locked: OnLocked,
}

/// What a claim does about rows that another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLocked {
    /// Passes over them: another claim, an update or a cancel decides about them.
    Skip,
    /// Fails. For a claim that is repeated with its token because the outcome of the first call is unknown: that very call may still
    /// hold the lock, so that passing over its rows would lose what it claims.
    Fail,
}

/// A claimed timer.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub entry: DueEntry,
    /// The shard lease under which it may be settled.
    pub shard_lease: ShardLease,
    pub token: ClaimToken,
    pub attempt: u32,
    /// The timer itself. One that cannot be read must be settled as failed: it must not hold up its shard.
    pub timer: Result<Timer, Unreadable>,
}

/// Why a stored timer could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// What became of a claimed timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    pub entry: DueEntry,
    pub shard_lease: ShardLease,
    pub token: ClaimToken,
    pub next: Next,
    /// What is to be remembered of the attempt, if anything.
    pub attempt: Option<Attempt>,
}

impl Settlement {
    /// How much of a receiver's answer it carries.
    pub fn answer_bytes(&self) -> usize {
        let answer = self.attempt.as_ref().and_then(|attempt| attempt.answer.as_ref());
        answer.map_or(0, domain::ReceivedAnswer::bytes)
    }
}

impl Claimed {
    pub const fn settle(&self, next: Next) -> Settlement {
        Settlement { entry: self.entry, shard_lease: self.shard_lease, token: self.token, next, attempt: None }
    }
}
