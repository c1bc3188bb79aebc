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
//! A request is repeated after a lost connection, 408, 429 and 503 only where that cannot do anything twice: reads, changes by `PUT`
//! and `DELETE`, and creates, which always have an id or a key. `timeout` is the deadline over all tries.

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
mod pages;
mod pauses;
mod query;
mod service;
mod timer;
mod timers;
pub mod webhook;

pub use by::TimerRef;
pub use calls::{Answer, Request};
pub use client::{Builder, Client};
pub use error::{Error, Refusal};
pub use events::{Event, EventQuery, Events};
pub use filter::Filter;
pub use json::Json;
pub use keys::{IssuedKey, Key, Keys};
pub use new_timer::{Callback, NewTimer, RetryPolicy, duration};
pub use pages::{Page, PageQuery};
pub use query::Query;
pub use timer::{Attempt, AttemptAnswer, Detail, Status, Timer, TimerDetail};
pub use timers::{BatchResult, Bulk, Bulked, Timers, Update};

/// An instant in UTC.
pub type Instant = chrono::DateTime<chrono::Utc>;
