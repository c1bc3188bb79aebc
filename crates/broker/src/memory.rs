//! A broker in memory, for tests. It stores nothing durably, and injects faults on demand.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use domain::TraceContext;
use tokio::{sync::Notify, time::Instant};

use crate::{Broker, BrokerError, Event, Received, Verdict};

/// A body with this prefix counts as published by a callback, since messages in memory have no headers.
pub(crate) const CALLBACK: &[u8] = b"callback ";
/// A command without a verdict is redelivered after this time.
const VERDICT_TIME_MAX: Duration = Duration::from_secs(10);

/// The broker. Its methods besides [`Broker`]'s are for the test that observes it. Cheap to clone: clones are the same broker.
#[derive(Clone, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes receivers that wait for commands.
    arrived: Notify,
    /// Wakes tests that wait for a change.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Commands that await delivery, in the order of arrival.
    waiting: VecDeque<Command>,
    under_way: usize,
    done: Vec<Bytes>,
    dead: Vec<DeadLetter>,
    events: Vec<Event>,
    sent: u64,
    deliveries: u64,
    times_given_back: usize,
    is_away: bool,
    cannot_dead_letter: bool,
    verdicts_to_lose: usize,
    dead_letter_time: Duration,
}

#[derive(Debug, Clone)]
struct Command {
    place: u64,
    body: Bytes,
    deliveries: u32,
    not_before: Instant,
}

/// A dead letter: a command that can never work, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub body: Bytes,
    pub reason: String,
}

impl Memory {
    /// Publishes a command.
    pub fn send(&self, body: impl Into<Bytes>) {
        self.arrival(|state| {
            let command = Command { place: state.sent, body: body.into(), deliveries: 0, not_before: Instant::now() };
            state.sent += 1;
            state.waiting.push_back(command);
        });
    }

    /// While the broker is away, it neither delivers nor accepts anything, verdicts included.
    pub fn set_away(&self, is_away: bool) {
        self.arrival(|state| state.is_away = is_away);
    }

    /// While this is set, every attempt to dead-letter a command fails and the command is redelivered.
    pub fn set_cannot_dead_letter(&self, cannot_dead_letter: bool) {
        self.change(|state| state.cannot_dead_letter = cannot_dead_letter);
    }

    /// The next `count` verdicts are answered with `Ok`, and lost.
    pub fn lose_verdicts(&self, count: usize) {
        self.change(|state| state.verdicts_to_lose = count);
    }

    /// From now on storing a dead letter takes this long.
    pub fn set_dead_letter_time(&self, time: Duration) {
        self.change(|state| state.dead_letter_time = time);
    }

    /// The bodies of the acknowledged commands, in the order of their acknowledgement.
    pub fn done(&self) -> Vec<Bytes> {
        self.state().done.clone()
    }

    pub fn dead(&self) -> Vec<DeadLetter> {
        self.state().dead.clone()
    }

    /// The published events, deduplicated.
    pub fn events(&self) -> Vec<Event> {
        self.state().events.clone()
    }

    /// How many commands await delivery or redelivery.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// How many commands are handed out without a verdict.
    pub fn under_way(&self) -> usize {
        self.state().under_way
    }

    /// How often commands were handed out, redeliveries included.
    pub fn deliveries(&self) -> u64 {
        self.state().deliveries
    }

    pub fn times_given_back(&self) -> usize {
        self.state().times_given_back
    }

    /// Waits until the condition holds.
    pub async fn until(&self, is_as_wished: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Registers before looking, so that no change is missed in between.
            changed.as_mut().enable();
            if is_as_wished(self) {
                return;
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrival(&self, change: impl FnOnce(&mut State)) {
        self.change(change);
        self.shared.arrived.notify_waiters();
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.shared.changed.notify_waiters();
        result
    }

    fn take(&self, max: usize) -> Taken {
        let now = Instant::now();
        self.change(|state| {
            if state.is_away {
                return Taken::Away;
            }
            let (due, waiting): (Vec<_>, Vec<_>) = state.waiting.drain(..).partition(|command| command.not_before <= now);
            let mut due: VecDeque<_> = due.into();
            let taken: Vec<_> = due.drain(..max.min(due.len())).collect();
            let next = waiting.iter().map(|command| command.not_before).min();
            state.waiting = due.into_iter().chain(waiting).collect();
            state.waiting.make_contiguous().sort_by_key(|command| command.place);
            state.under_way += taken.len();
            state.deliveries += taken.len() as u64;
            if taken.is_empty() { Taken::Nothing { until: next } } else { Taken::Some(taken) }
        })
    }

    fn again(&self, command: Command, after: Duration) {
        self.arrival(|state| {
            state.under_way -= 1;
            state.waiting.push_back(Command { not_before: Instant::now() + after, ..command });
            state.waiting.make_contiguous().sort_by_key(|command| command.place);
        });
    }
}

enum Taken {
    Some(Vec<Command>),
    Nothing { until: Option<Instant> },
    Away,
}

fn away() -> BrokerError {
    BrokerError::Away("it was told to be".into())
}

#[async_trait]
impl Broker for Memory {
    async fn receive(&self, max: usize) -> Result<Vec<Box<dyn Received>>, BrokerError> {
        loop {
            let arrived = self.shared.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            let until = match self.take(max) {
                Taken::Away => return Err(away()),
                Taken::Some(commands) => {
                    let handed_out = |command: Command| -> Box<dyn Received> {
                        let command = Command { deliveries: command.deliveries + 1, ..command };
                        Box::new(HandedOut { broker: self.clone(), command: Some(command) })
                    };
                    return Ok(commands.into_iter().map(handed_out).collect());
                }
                Taken::Nothing { until } => until,
            };
            match until {
                Some(until) => drop(tokio::time::timeout_at(until, arrived).await),
                None => arrived.await,
            }
        }
    }

    async fn give_back(&self) -> Result<(), BrokerError> {
        self.change(|state| {
            state.times_given_back += 1;
            if state.is_away { Err(away()) } else { Ok(()) }
        })
    }

    async fn publish(&self, event: Event) -> Result<(), BrokerError> {
        self.change(|state| {
            if state.is_away {
                return Err(away());
            }
            if !state.events.iter().any(|earlier| earlier.id == event.id) {
                state.events.push(event);
            }
            Ok(())
        })
    }
}

/// A command that was handed out. One that is dropped without a verdict is redelivered.
struct HandedOut {
    broker: Memory,
    command: Option<Command>,
}

#[async_trait]
impl Received for HandedOut {
    fn body(&self) -> &[u8] {
        self.command.as_ref().map_or(&[], |command| &command.body)
    }

    fn is_callback(&self) -> bool {
        self.body().starts_with(CALLBACK)
    }

    fn trace(&self) -> Option<TraceContext> {
        None
    }

    fn deliveries(&self) -> u32 {
        self.command.as_ref().map_or(0, |command| command.deliveries)
    }

    async fn settle(mut self: Box<Self>, verdict: Verdict) -> Result<(), BrokerError> {
        let broker = self.broker.clone();
        let dead_letter_time = broker.state().dead_letter_time;
        if matches!(verdict, Verdict::Never { .. }) && !dead_letter_time.is_zero() {
            tokio::time::sleep(dead_letter_time).await;
        }
        let (is_away, is_lost, cannot_dead_letter) = broker.change(|state| {
            let is_lost = !state.is_away && state.verdicts_to_lose > 0;
            state.verdicts_to_lose -= usize::from(is_lost);
            (state.is_away, is_lost, state.cannot_dead_letter)
        });
        if is_away {
            return Err(away());
        }
        // The command is dropped without its verdict, so that it is redelivered.
        if is_lost {
            return Ok(());
        }
        let Some(command) = self.command.take() else { return Ok(()) };
        match verdict {
            Verdict::Done => broker.change(|state| {
                state.under_way -= 1;
                state.done.push(command.body);
            }),
            Verdict::Later { after } => broker.again(command, after),
            Verdict::Never { .. } if cannot_dead_letter => {
                broker.again(command, VERDICT_TIME_MAX);
                return Err(BrokerError::Refused("it was told not to dead-letter".into()));
            }
            Verdict::Never { reason } => broker.change(|state| {
                state.under_way -= 1;
                state.dead.push(DeadLetter { body: command.body, reason });
            }),
        }
        Ok(())
    }
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        if let Some(command) = self.command.take() {
            self.broker.again(command, VERDICT_TIME_MAX);
        }
    }
}
