//! What every database must promise, so that nothing above needs to know which one it is.
//!
//! ```text
//!   what                 when                      what happened
//!   definition ──┬────── due (shard, minute, id) ─────▶ outcome
//!                │        unclaimed = pending           completed,
//!                │        claimed   = executing         failed, canceled,
//!                └─ changed only by an update          expired
//! ```
//!
//! A timer is in `due` from its creation to its end, then in `outcome`: where it stands is its status.
//! The contract is [`Store`], in parts by caller; `store-conformance` holds every implementation to it.
//!
//! ```text
//!   TimerStore        commands                     create, read, list, change
//!   DueStore          scheduler, pipeline          read ahead, claim, settle, recover, purge
//!   MembershipStore   scheduler                    heartbeats, shard leases, nudges
//!   KeyStore          commands (key ring)          API keys
//!   HealthStore       commands, watch of storage   ping, probe, cluster
//! ```

mod calls;
mod claim;
mod decorator;
mod due_store;
mod error;
mod health_store;
mod key_store;
mod measured;
mod membership;
mod membership_store;
mod operation;
mod query;
mod sharded;
mod stored;
mod timer_store;
mod writable;

pub use claim::{Claim, ClaimToken, Claimed, DueEntry, Epoch, NodeId, OnLocked, Settlement, ShardCursor, ShardLease, Unreadable};
pub use decorator::Decorator;
pub use due_store::DueStore;
pub use error::{StoreError, StoreResult};
pub use health_store::HealthStore;
pub use key_store::KeyStore;
pub use measured::{METRICS, Measured};
pub use membership::{Cluster, DEAD_MEMBERS_KEPT, HeartbeatReply, Member, ShardState};
pub use membership_store::MembershipStore;
pub use operation::Operation;
pub use query::{COUNTED_MAX, Count, Cursor, Filter, GroupCount, ListQuery, Order, Page, Sort, Summary};
pub use sharded::Sharded;
pub use stored::StoredTimer;
pub use timer_store::{Changed, Created, TimerStore};
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
/// A timer's revision rises with every change of its definition or of its due time (`execute_at`), by any caller, and
/// never falls: two readings with the same revision differ at most in how far the delivery got. A lease has run out
/// at the very moment it ends.
pub trait Store: TimerStore + DueStore + KeyStore + MembershipStore + HealthStore {}

impl<S: TimerStore + DueStore + KeyStore + MembershipStore + HealthStore> Store for S {}
