use domain::Shard;

/// A store that keeps its timers in shards.
pub trait Sharded: Send + Sync {
    /// How many shards there are: fixed when the database was set up.
    fn shards(&self) -> u16;

    /// The shard in which new timers are cheapest whose ids the service makes: one that this process owns, and the same for a moment, so
    /// that timers which are registered together lie together. `None` where it makes no difference.
    fn shard_for_new(&self) -> Option<Shard> {
        None
    }

    /// Whether every write waits for the one before it, so that a call that is due waits for whatever is written.
    fn has_one_writer(&self) -> bool {
        false
    }

    /// Which promises this store does not keep.
    fn lacks(&self) -> &'static [Promise] {
        &[]
    }
}

/// What a store may lack. Everything else that the contract says, every store keeps: that what was answered is durable, that of many
/// claimers one gets a timer, fencing, conflicts, the order of due timers, that a timer which was written is read and listed, take-over, purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// `cancel_all`, and what `change_all` does, is one commit. Without it each timer is changed by itself: a crash leaves some of them
    /// changed, and an operation that goes on changes no timer twice.
    BulkChangesInOneCommit,
    /// An event is recorded in the commit of what it tells of. Without it a crash in between loses the event.
    EventsWithTheirChange,
}

impl Promise {
    pub const ALL: [Self; 2] = [Self::BulkChangesInOneCommit, Self::EventsWithTheirChange];

    /// In words, for messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BulkChangesInOneCommit => "bulk changes in one commit",
            Self::EventsWithTheirChange => "events in the commit of their change",
        }
    }
}
