//! The Rust SDK of Timer Platform: register a call for later, look after it, and verify it where it arrives.
//!
//! ```no_run
//! # async fn example() -> Result<(), client::Error> {
//! use std::time::Duration;
//!
//! use client::{Client, Json, NewTimer};
//!
//! let client = Client::from_env()?;
//! let timer = NewTimer::http("https://shop.example/hooks/cart-abandoned")
//!     .after(Duration::from_secs(15 * 60))
//!     .payload(Json::of(&serde_json::json!({"cart": 4711}))?);
//! let timer = client.timers().create(&timer).await?;
//! client.timers().cancel(&timer.id).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A request is repeated after a lost connection, 408, 429, 502, 503 and 504 only where it is idempotent: reads, changes by `PUT` and
//! `DELETE`, and creates, which always have an id or a key. A `fire` is never repeated, nor is a change of a given revision.
//! `timeout` is the deadline over all tries.
//!
//! - [`Timers`] has the calls about timers, [`Keys`], [`Groups`], [`Operations`] and [`Stats`] have theirs; lists are streams.
//! - [`webhook`] is for receivers: it verifies calls, and has the answers of the `timer` protocol.
//! - [`dev`] is for tests: a service whose clock is moved.

mod bulk;
mod by;
mod calls;
mod client;
pub mod dev;
mod error;
mod events;
mod filter;
mod json;
mod keys;
mod new_timer;
mod operations;
mod pages;
mod pauses;
mod query;
mod service;
mod timer;
mod timers;
mod update;
pub mod webhook;
mod wire;

pub use bulk::{Bulk, BulkPreview, Bulked, CancelMatching, Canceled, CountByStatus};
pub use by::TimerRef;
pub use calls::{Answer, Request};
pub use client::{Builder, Client};
pub use error::{Error, Refusal};
pub use events::{Event, EventQuery, Events};
pub use filter::Filter;
pub use json::Json;
pub use keys::{IssuedKey, Key, Keys};
pub use new_timer::{Callback, NewTimer, RetryPolicy, duration};
pub use operations::{Group, Groups, Operation, Operations};
pub use pages::{Page, PageQuery};
pub use pauses::retry_after;
pub use query::Query;
pub use service::{
    Caller, Cluster, Destination, Destinations, DueBucket, DueStats, FiredBucket, FiredStats, Health, Namespace, Namespaces,
    Node, Shard, ShardMove, Stats, StatsQuery,
};
pub use timer::{Attempt, AttemptAnswer, Detail, Status, Timer, TimerDetail};
pub use timers::{BatchResult, Count, Timers};
pub use update::Update;

/// An instant in UTC.
pub type Instant = chrono::DateTime<chrono::Utc>;
