//! What every database must promise, so that nothing above needs to know which one it is.
//!
//! ```text
//!   what                 when                      what happened
//!   definition ──┬────── due (shard, minute, id) ─────▶ outcome
//!                │        unclaimed = pending   ▲       completed, failed,
//!                │        claimed   = executing │       canceled, expired
//!                │                   │          │          ▲
//!                │             pause └─▶ paused ┴──────────┘
//!                └─ changed only by an update     resume
//! ```
//!
//! A timer is in `due` from its creation to its end, or in `paused` meanwhile, then in `outcome`: where it stands is its status.
//! The contract is [`Store`], in parts by caller; `store-conformance` holds every implementation to it.
//!
//! ```text
//!   TimerStore        commands                     create, read, list, change
//!   BulkStore         commands                     change many timers, operations
//!   DueStore          scheduler, pipeline          read ahead, claim, settle, recover, purge
//!   MembershipStore   scheduler                    heartbeats, shard leases, nudges
//!   KeyStore          commands (key ring)          API keys
//!   EventStore        commands (event streams)     what happened, by time
//!   HealthStore       commands, watch of storage   ping, probe, cluster
//!   StatsStore        commands, recorder           counts, and what nodes write down of their work
//! ```

mod bulk;
mod bulk_operation;
mod bulk_store;
mod calls;
mod claim;
mod decorator;
mod due_store;
mod error;
mod event;
mod event_store;
mod filter;
mod health_store;
mod key_store;
mod measured;
mod membership;
mod membership_store;
mod operation;
mod query;
mod sharded;
mod stats;
mod stats_store;
mod stored;
mod timer_store;
mod writable;

pub use bulk::{
    BulkAction, BulkChange, BulkCounts, BulkItem, BulkStep, EXPIRED_BY_CLIENT, Standing, Terms, is_let_expire, resume,
};
pub use bulk_operation::{BulkOperation, OperationId, OperationState, Progress};
pub use bulk_store::BulkStore;
pub use claim::{Claim, ClaimToken, Claimed, DueEntry, Epoch, NodeId, OnLocked, Settlement, ShardCursor, ShardLease, Unreadable};
pub use decorator::Decorator;
pub use due_store::DueStore;
pub use error::{StoreError, StoreResult};
pub use event::{EventPage, Happened, JOURNAL_KEPT, PROMPT_WITHIN, Read, Recorded, Watermark, is_prompt, is_resumable};
pub use event_store::EventStore;
pub use filter::{Candidate, Filter, Period};
pub use health_store::HealthStore;
pub use key_store::KeyStore;
pub use measured::{METRICS, Measured};
pub use membership::{Cluster, DEAD_MEMBERS_KEPT, HeartbeatReply, Member, ShardState};
pub use membership_store::MembershipStore;
pub use operation::Operation;
pub use query::{COUNTED_MAX, Count, Cursor, GroupCount, ListQuery, Order, Page, SCANS_MAX, SEARCH_BUDGET, Sort, Summary};
pub use sharded::{Promise, Sharded};
pub use stats::{
    Digest, DueCounts, DueQuery, GENERATION_MICROS, NAMESPACES_LISTED_MAX, NamespaceCount, NamespaceCounts, NodeDigest,
    NodeReceiver, NodeStats, RECEIVERS_READ_MAX, ReceiverReport, SLOT_MICROS, read_report, write_report,
};
pub use stats_store::StatsStore;
pub use stored::{RequestColumns, StoredTimer};
pub use timer_store::{Changed, Created, MISSED_WHILE_PAUSED, TimerStore};
pub use writable::Writable;

/// The whole contract: what a database must implement to be a store. It is divided by caller, so that each part of the
/// service is given only the calls that it needs; an `Arc<dyn Store>` coerces to an `Arc` of any of them.
///
/// Every method is one round trip and, where it writes, one commit.
///
/// When a writing call answers `Ok`, what it says is on disk. An error says whether nothing was done
/// ([`StoreError::is_not_done`]) or whether that is unknown ([`StoreError::Unknown`]); an unknown outcome must be
/// read back before a client is answered.
///
/// A timer's revision rises with every change of its definition or of its due time (`execute_at`), with a pause and a resume, by any caller,
/// and never falls: two readings with the same revision differ at most in how far the delivery got, and in a cancel. A lease has run out
/// at the very moment it ends.
pub trait Store: TimerStore + BulkStore + DueStore + KeyStore + MembershipStore + HealthStore + EventStore + StatsStore {}

impl<S: TimerStore + BulkStore + DueStore + KeyStore + MembershipStore + HealthStore + EventStore + StatsStore> Store for S {}
