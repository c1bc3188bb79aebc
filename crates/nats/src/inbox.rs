//! Our own subject, to which confirmations come.
//!
//! ```text
//!          connected                probe came back
//!   Down ────────────▶ Opening ─────────────────────▶ Open
//!    ▲                 │ │  ▲                          │
//!    │ disconnected    │ │  └──────────────────────────┘ a round timed out: does the server still answer?
//!    │ (from anywhere) │ └──▶ AnswersOnly   we may not publish to it: streams can answer, markers do not come
//!                      └────▶ Refused       we may not listen to it
//! ```
//!
//! Nothing is published unless it is known that a confirmation could come. A server that hangs, or a user who lacks a
//! permission, would else get every message again with every new attempt. The last two states are left by trying again now and
//! then, for permissions can be given while the connection stands.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_nats::Message;
use tokio::sync::{oneshot, watch};

use crate::PublishError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    #[default]
    Down,
    Opening,
    Open,
    AnswersOnly,
    Refused,
}

/// What a publish waits for at the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A message that we send to it.
    Marker,
    /// A message that a stream sends to it.
    Answer,
}

/// Why no confirmation can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Publish,
    Subscribe,
}

#[derive(Default)]
pub(crate) struct Inbox {
    prefix: OnceLock<String>,
    state: watch::Sender<State>,
    expected: Mutex<HashMap<u64, oneshot::Sender<Message>>>,
    last_token: AtomicU64,
    /// The token of the last probe, and the number of the connection it was sent over.
    probe: Mutex<(u64, u64)>,
}

/// A message that is expected, and its address. Dropping it ends the wait.
pub(crate) struct Expected {
    inbox: Arc<Inbox>,
    token: u64,
    pub address: String,
    pub message: oneshot::Receiver<Message>,
}

impl Inbox {
    /// To be called before anything is expected.
    pub fn open_at(&self, prefix: String) {
        // It is called once.
        let _ = self.prefix.set(prefix);
    }

    pub fn connected(&self) {
        self.state.send_replace(State::Opening);
    }

    pub fn disconnected(&self) {
        self.state.send_replace(State::Down);
    }

    /// Nothing is confirmed over this connection any more until it shows that it works.
    pub fn doubt(&self) {
        self.move_on(&[State::Open], State::Opening);
    }

    /// Publishing to `subject` was denied. If that was the inbox, and for the first time, says so.
    pub fn publish_denied(&self, subject: &str) -> Option<Refusal> {
        let is_ours = subject.strip_prefix(self.prefix()).is_some_and(|rest| rest.starts_with('.'));
        (is_ours && self.move_on(&[State::Opening, State::Open], State::AnswersOnly)).then_some(Refusal::Publish)
    }

    pub fn subscription_denied(&self, subject: &str) -> Option<Refusal> {
        let from = [State::Opening, State::Open, State::AnswersOnly];
        (subject == self.subject() && self.move_on(&from, State::Refused)).then_some(Refusal::Subscribe)
    }

    /// Why what a publish waits for cannot come, as far as that is known.
    pub fn refusal(&self, need: Need) -> Option<Refusal> {
        match (*self.state.borrow(), need) {
            (State::Refused, _) => Some(Refusal::Subscribe),
            (State::AnswersOnly, Need::Marker) => Some(Refusal::Publish),
            _ => None,
        }
    }

    /// Whether it is known that what is needed can come.
    pub fn is_open(&self, need: Need) -> bool {
        matches!((*self.state.borrow(), need), (State::Open, _) | (State::AnswersOnly, Need::Answer))
    }

    pub fn expect(self: &Arc<Self>) -> Expected {
        let (sender, message) = oneshot::channel();
        let token = self.last_token.fetch_add(1, Ordering::Relaxed) + 1;
        self.expected().insert(token, sender);
        Expected { inbox: self.clone(), token, address: self.address(token), message }
    }

    /// Takes in a message that came over the connection with this number.
    pub fn take(&self, connection: u64, message: Message) {
        let token = message.subject.strip_prefix(self.prefix()).and_then(|rest| rest.strip_prefix('.')?.parse().ok());
        let Some(token) = token else { return };
        if (token, connection) == *lock(&self.probe) {
            self.move_on(&[State::Opening, State::AnswersOnly], State::Open);
        } else if let Some(expecting) = self.expected().remove(&token) {
            // It may not be awaited any more.
            let _ = expecting.send(message);
        }
    }

    /// The address of a probe over the connection with this number. It opens the inbox when it comes back.
    pub fn expect_probe(&self, connection: u64) -> String {
        let token = self.last_token.fetch_add(1, Ordering::Relaxed) + 1;
        *lock(&self.probe) = (token, connection);
        self.address(token)
    }

    /// The number of the connection that the last probe was sent over.
    pub fn probed_over(&self) -> u64 {
        lock(&self.probe).1
    }

    pub fn state(&self) -> State {
        *self.state.borrow()
    }

    pub fn states(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// A refusal may have been lifted: the next probe shows it.
    pub fn ask_again(&self) {
        self.move_on(&[State::Refused], State::Opening);
    }

    fn move_on(&self, from: &[State], to: State) -> bool {
        self.state.send_if_modified(|state| {
            let moves = from.contains(state);
            if moves {
                *state = to;
            }
            moves
        })
    }

    fn prefix(&self) -> &str {
        self.prefix.get().map_or("", String::as_str)
    }

    pub fn subject(&self) -> String {
        format!("{}.*", self.prefix())
    }

    fn address(&self, token: u64) -> String {
        format!("{}.{token}", self.prefix())
    }

    pub fn expected(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Message>>> {
        lock(&self.expected)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.inbox.expected().remove(&self.token);
    }
}

impl Refusal {
    pub const fn missing(self) -> &'static str {
        match self {
            Self::Publish => "publish to",
            Self::Subscribe => "subscribe to",
        }
    }
}

impl From<Refusal> for PublishError {
    fn from(refusal: Refusal) -> Self {
        Self::Unconfirmable { missing: refusal.missing() }
    }
}
