//! Our own subject, to which confirmations come.
//!
//! ```text
//!          connected                probe came back
//!   Down ────────────▶ Opening ─────────────────────▶ Open
//!    ▲                 │ │  ▲                          │
//!    │ disconnected    │ │  └──────────────────────────┘ a round timed out: is anybody there?
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
    time::Duration,
};

use async_nats::Message;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::{
    sync::{oneshot, watch},
    time::{MissedTickBehavior, interval},
};

use crate::{PublishError, link::Link, metrics};

const TICK: Duration = Duration::from_secs(1);
/// After how many ticks something that did not work is tried again.
const RETRY_TICKS: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Down,
    Opening,
    Open,
    AnswersOnly,
    Refused,
}

/// What somebody waits for at the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A message that we send to it.
    Marker,
    /// A message that somebody else sends to it.
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

/// A message that is expected, and its address. Whoever drops it does not wait for it any more.
pub(crate) struct Expected {
    inbox: Arc<Inbox>,
    token: u64,
    pub address: String,
    pub message: oneshot::Receiver<Message>,
}

impl Inbox {
    /// To be called before anything is expected.
    pub fn open_at(&self, prefix: String) {
        // Nobody calls it twice.
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

    /// Somebody was not allowed to publish to `subject`. If that was the inbox: for the first time?
    pub fn publish_denied(&self, subject: &str) -> Option<Refusal> {
        let is_ours = subject.strip_prefix(self.prefix()).is_some_and(|rest| rest.starts_with('.'));
        (is_ours && self.move_on(&[State::Opening, State::Open], State::AnswersOnly)).then_some(Refusal::Publish)
    }

    pub fn subscription_denied(&self, subject: &str) -> Option<Refusal> {
        let from = [State::Opening, State::Open, State::AnswersOnly];
        (subject == self.subject() && self.move_on(&from, State::Refused)).then_some(Refusal::Subscribe)
    }

    /// Why what somebody waits for cannot come, as far as that is known.
    pub fn refusal(&self, need: Need) -> Option<Refusal> {
        match (*self.state.borrow(), need) {
            (State::Refused, _) => Some(Refusal::Subscribe),
            (State::AnswersOnly, Need::Marker) => Some(Refusal::Publish),
            _ => None,
        }
    }

    /// Whether it is known that what is needed can come.
    fn is_open(&self, need: Need) -> bool {
        matches!((*self.state.borrow(), need), (State::Open, _) | (State::AnswersOnly, Need::Answer))
    }

    pub fn expect(self: &Arc<Self>) -> Expected {
        let (sender, message) = oneshot::channel();
        let token = self.last_token.fetch_add(1, Ordering::Relaxed) + 1;
        self.expected().insert(token, sender);
        Expected { inbox: self.clone(), token, address: self.address(token), message }
    }

    fn take(&self, link: &Link, message: Message) {
        let token = message.subject.strip_prefix(self.prefix()).and_then(|rest| rest.strip_prefix('.')?.parse().ok());
        let Some(token) = token else { return };
        if (token, link.number()) == *lock(&self.probe) {
            self.move_on(&[State::Opening, State::AnswersOnly], State::Open);
        } else if let Some(expecting) = self.expected().remove(&token) {
            // Nobody may wait for it any more.
            let _ = expecting.send(message);
        }
    }

    /// Sends a message to ourselves; it opens the inbox when it comes back.
    async fn send_probe(&self, link: &Link) {
        let token = self.last_token.fetch_add(1, Ordering::Relaxed) + 1;
        *lock(&self.probe) = (token, link.number());
        // It fails only when the client has ended, and then nobody is waiting.
        let _ = link.client.publish(self.address(token), Bytes::new()).await;
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

    fn subject(&self) -> String {
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

/// Waits until what is needed can come, over a connection that stands. An error when that is not so, as far as is known.
pub(crate) async fn ready(link: &Link, need: Need) -> Result<(), PublishError> {
    let mut states = link.inbox.state.subscribe();
    let mut changes = link.events.changes();
    loop {
        states.mark_unchanged();
        changes.mark_unchanged();
        if link.is_away() {
            return Err(PublishError::NotConnected);
        }
        if link.is_up() && link.inbox.is_open(need) {
            return Ok(());
        }
        if let Some(refusal) = link.inbox.refusal(need) {
            return Err(refusal.into());
        }
        // Neither of them ends while there is a link.
        tokio::select! {
            _ = states.changed() => {}
            _ = changes.changed() => {}
        }
    }
}

/// Takes in what comes, for as long as there is a client.
pub(crate) async fn listen(link: Arc<Link>) {
    let inbox = &link.inbox;
    let mut state = inbox.state.subscribe();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Ok(mut messages) = link.client.subscribe(inbox.subject()).await {
        state.mark_changed();
        let mut ticks = 0;
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => inbox.take(&link, message),
                    None => return,
                },
                _ = state.changed() => {
                    ticks = 0;
                    if *state.borrow_and_update() == State::Opening {
                        inbox.send_probe(&link).await;
                    }
                }
                _ = tick.tick() => {
                    ticks += 1;
                    if check(&link, ticks) {
                        break;
                    }
                }
            }
        }
        inbox.move_on(&[State::Refused], State::Opening);
    }
}

/// Makes up for events that got lost, and tries again what was refused. True when the subscription is to be made again.
fn check(link: &Link, ticks: u32) -> bool {
    let inbox = &link.inbox;
    let is_up = link.is_up();
    metrics::connected(link.name, is_up);
    let state = *inbox.state.borrow();
    let is_stale = lock(&inbox.probe).1 != link.number();
    let is_turn = ticks.is_multiple_of(RETRY_TICKS);
    match state {
        State::Down if is_up => inbox.connected(),
        State::Down => {}
        _ if !is_up => {
            inbox.disconnected();
            link.events.nudge();
        }
        State::Opening | State::AnswersOnly if is_turn => inbox.connected(),
        State::Refused => return is_turn,
        _ if is_stale => inbox.connected(),
        _ => {}
    }
    false
}
