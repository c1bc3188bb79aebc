//! Every limit of the listener and of a request, in one place.

use std::time::Duration;

/// The largest body of a request.
pub const BODY_BYTES_MAX: usize = MEBIBYTE;
/// What every connection may send at any time. Whatever is larger waits for a permit with all but this much of it unread, so that bodies,
/// with what is read from them, hold no more than about 512 MiB: 128 MiB of small ones on 1,024 connections, 128 MiB of large ones,
/// and batches.
pub(crate) const SMALL_BODY_BYTES_MAX: usize = 64 * 1024;
pub(crate) const LARGE_BODIES_AT_ONCE_MAX: usize = 64;
/// What is read ahead of one connection.
pub(crate) const READ_AHEAD_BYTES_MAX: usize = 64 * 1024;
/// The largest body of a batch: 8 KiB for each of as many timers as it may hold. A body is held in memory until it is answered, and
/// what is read from it takes about as much again, so that only so many batches are read at the same time: together they hold no
/// more than 256 MiB, however many connections there are.
pub const BATCH_BYTES_MAX: usize = 8 * MEBIBYTE;
pub(crate) const BATCHES_AT_ONCE_MAX: usize = 16;
pub(crate) const MEBIBYTE: usize = 1024 * 1024;
/// How far `offset` and `limit` lead. Further on there is the cursor, which costs the same however far it is.
pub(crate) const PASSED_OVER_MAX: u64 = 10_000;
/// The largest page of a list, and the usual one.
pub const PAGE_TIMERS_MAX: u32 = 200;
pub const PAGE_TIMERS_DEFAULT: u32 = 50;
/// How many namespaces a filter can name.
pub(crate) const FILTER_NAMESPACES_MAX: usize = 100;
/// The longest `x-request-id` that is taken over.
pub(crate) const REQUEST_ID_CHARS_MAX: usize = 128;

/// Connections beyond the limits, so that a probe is answered whatever else is going on, and every other client is told why it is not.
pub const RESERVED_CONNECTIONS_MAX: usize = 16;
/// What these get for the head of their one request.
pub(crate) const RESERVED_TIME_MAX: Duration = Duration::from_secs(2);

/// What one listener grants its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Beyond these, idle connections of the address that has most are closed for new ones. Where none is idle, a new one is answered
    /// 503, except for `/healthz` and `/ping`.
    pub connections_max: usize,
    /// How many one client address may have. Beyond these, too, a new one is answered 503.
    pub connections_per_address_max: usize,
    /// From the first byte of a request to the end of its headers.
    pub head_time_max: Duration,
    /// From the end of the headers to the end of the body.
    pub body_time_max: Duration,
    /// How long a connection may be without a request.
    pub idle_time_max: Duration,
    /// How long a client may take none of an answer.
    pub write_stall_max: Duration,
    /// How long a shutdown waits for requests in flight.
    pub drain_time_max: Duration,
    /// The request line and all headers.
    pub head_bytes_max: usize,
    pub headers_max: usize,
    pub uri_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            connections_per_address_max: 64,
            head_time_max: Duration::from_secs(10),
            body_time_max: Duration::from_secs(15),
            idle_time_max: Duration::from_secs(60),
            write_stall_max: Duration::from_secs(15),
            drain_time_max: Duration::from_secs(20),
            head_bytes_max: 16 * 1024,
            headers_max: 64,
            uri_bytes_max: 8 * 1024,
        }
    }
}
