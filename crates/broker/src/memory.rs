//! A broker in memory, for tests: it keeps nothing beyond its own life, and misbehaves when told to.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::{sync::Notify, time::Instant};

use crate::{Broker, BrokerError, Event, Received, Verdict};

/// What begins like this counts as published by a callback: nothing in memory has headers.
pub(crate) const CALLBACK: &[u8] = b"callback ";
/// After this time without a verdict a command is delivered again.
const VERDICT_TIME_MAX: Duration = Duration::from_secs(10);

/// The broker. Its methods besides [`Broker`]'s are for the test that watches it. Cheap to clone: clones are the same broker.
#[derive(Clone, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes those that wait for commands.
    arrived: Notify,
    /// Wakes those that watch.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Those that wait for delivery, in the order in which they came.
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

/// A command that can never work, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub body: Bytes,
    pub reason: String,
}

impl Memory {
    /// A command arrives.
    pub fn send(&self, body: impl Into<Bytes>) {
        self.arrival(|state| {
            let command = Command { place: state.sent, body: body.into(), deliveries: 0, not_before: Instant::now() };
            state.sent += 1;
            state.waiting.push_back(command);
        });
    }

    /// While it is away, it neither delivers nor takes anything, verdicts included.
    pub fn set_away(&self, is_away: bool) {
        self.arrival(|state| state.is_away = is_away);
    }

    /// While it cannot dead-letter, every attempt to put a command aside fails and the command comes again.
    pub fn set_cannot_dead_letter(&self, cannot_dead_letter: bool) {
        self.change(|state| state.cannot_dead_letter = cannot_dead_letter);
    }

    /// The next so many verdicts are answered with `Ok`, and never arrive.
    pub fn lose_verdicts(&self, count: usize) {
        self.change(|state| state.verdicts_to_lose = count);
    }

    /// From now on it takes so long to put a command aside.
    pub fn set_dead_letter_time(&self, time: Duration) {
        self.change(|state| state.dead_letter_time = time);
    }

    /// The bodies of the commands that are done, in the order in which they became so.
    pub fn done(&self) -> Vec<Bytes> {
        self.state().done.clone()
    }

    pub fn dead(&self) -> Vec<DeadLetter> {
        self.state().dead.clone()
    }

    /// What was published, without repetitions.
    pub fn events(&self) -> Vec<Event> {
        self.state().events.clone()
    }

    /// How many commands wait for delivery or for another one.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// How many commands are handed out and have no verdict.
    pub fn under_way(&self) -> usize {
        self.state().under_way
    }

    /// How often commands were handed out, repetitions included.
    pub fn deliveries(&self) -> u64 {
        self.state().deliveries
    }

    pub fn times_given_back(&self) -> usize {
        self.state().times_given_back
    }

    /// Waits until the broker is as wished.
    pub async fn until(&self, is_as_wished: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Before looking, so that no change is missed in between.
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

/// A command in somebody's hands. One that is dropped there comes again.
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
        // Dropped with the command still in it, so that it comes again.
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
                return Err(BrokerError::Refused("it was told not to bury".into()));
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
