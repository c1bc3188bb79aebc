//! A connection to a NATS server that reports truthfully whether a message has arrived there.
//!
//! The client library underneath returns Ok as soon as a message is in a buffer, even while there is no server at all. Here Ok
//! means that the server has the message: [`Connection::publish`] waits until the server has accepted it,
//! [`Connection::publish_to_stream`] until a stream has stored it.
//!
//! ```text
//!   publish ───────────┐                  messages, then a marker      ┌────────┐
//!                      ├▶ queue ▶ rounds ─────────────────────────────▶│        │
//!   publish_to_stream ─┘                                               │ server │
//!                                         the marker, streams' answers │        │
//!            confirmed ◀────────── inbox ◀─────────────────────────────│        │
//!              refused ◀───────── events ◀──── permission denied, … ───└────────┘
//! ```
//!
//! Both confirmations are messages to a subject of our own, the `inbox`. That of a stream comes from the stream. That of a plain
//! publish we send to ourselves: a server takes what comes over one connection in order, so that the marker that was sent last, when it
//! comes back, proves that everything before it was taken (`rounds` has the proof).
//!
//! Each connection has a thread with a small runtime of its own. The proof requires that whatever the server said before the
//! marker has been processed when the marker is, and only a single thread gives that order. The thread also keeps pings and
//! reconnects going when other threads are busy.

mod connection;
mod error;
mod events;
mod inbox;
mod link;
mod listening;
mod message;
mod metrics;
mod options;
mod rounds;
mod stream;
mod tls;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use connection::{Connection, connection};
pub use error::PublishError;
pub use message::Outgoing;
pub use metrics::METRICS;
pub use options::Options;
pub use stream::Stored;

/// How long a publish may take from the call to the confirmation.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);
