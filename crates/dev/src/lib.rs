//! What only `timer dev` has: a receiver with an inbox and answers that can be programmed, and a clock that can be moved. With these,
//! a reminder in thirty days, with its retries, is tested in a second.
//!
//! ```text
//!   deliveries ──▶ receiver ──▶ inbox ◀── GET /dev/inbox
//!                     └─ answers ◀──────── PUT /dev/inbox/answers
//!   everything that asks for the time ──▶ clock ◀── POST /dev/clock/advance
//! ```
//!
//! The API shows them to clients; how the service advances with its clock is for the server to say ([`AdvanceClock`]).

mod advance;
mod answers;
mod clock;
mod inbox;
mod receiver;

use std::{fmt, sync::Arc};

pub use advance::{Advance, AdvanceClock, AdvanceError, Advanced};
pub use answers::{ANSWER_DELAY_MAX, ANSWERS_MAX, Answer, Answers, Reply};
pub use clock::MovableClock;
pub use inbox::{Arrival, CALLS_KEPT, Call, Inbox, InboxQuery};
pub use receiver::{BODY_BYTES_MAX, CheckSignature, Receiver, SignedCall};

/// What the API serves under `/dev`.
#[derive(Clone)]
pub struct DevTools {
    pub inbox: Arc<Inbox>,
    pub answers: Arc<Answers>,
    pub clock: Arc<dyn AdvanceClock>,
}

impl fmt::Debug for DevTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevTools").finish_non_exhaustive()
    }
}
