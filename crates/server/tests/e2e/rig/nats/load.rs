//! Commands at a steady rate, whatever happens to the broker or the service, and whether the events agree with them.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    ops::Range,
    time::Duration,
};

use futures_util::future::join_all;
use rand::{RngExt, rngs::StdRng};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::MissedTickBehavior,
};
use tokio_util::sync::CancellationToken;

use super::{Bus, Event, Message, Witness, schedule_timer};
use crate::rig::now;
use crate::rig::tolerated;

const TENANT: &str = "load";
/// While the broker is away, unanswered commands must not pile up without end.
const UNANSWERED_MAX: usize = 4_000;
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// One command.
#[derive(Debug, Clone)]
pub struct Sent {
    pub call: String,
    pub due: i64,
    /// When the broker's acknowledgement was there, if it came.
    pub acknowledged: Option<i64>,
}

impl Sent {
    /// A command that is due so many microseconds from now.
    async fn send(bus: &Bus, call: String, ahead: i64) -> Self {
        let due = now() + ahead;
        let acknowledged = bus.command(&schedule_timer(TENANT, &call, due)).await.ok().map(|_| now());
        Self { call, due, acknowledged }
    }

    /// So many commands in one go. Their calls begin with `name`.
    pub async fn heap(bus: &Bus, name: &str, commands: usize, ahead: Range<i64>, mut numbers: StdRng) -> Vec<Self> {
        let send = |n: usize| Self::send(bus, format!("{name}-{n}"), numbers.random_range(ahead.clone()));
        join_all((0..commands).map(send)).await
    }
}

pub struct Load {
    stop: CancellationToken,
    task: JoinHandle<Vec<Sent>>,
}

impl Load {
    /// Commands that are due so many microseconds after they are sent.
    pub fn start(bus: Bus, per_second: u32, ahead: Range<i64>, numbers: StdRng) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(bus, Duration::from_secs(1) / per_second, ahead, numbers, stop.clone()));
        Self { stop, task }
    }

    /// Every command that was sent, once it is known what became of it.
    pub async fn stop(self) -> Vec<Sent> {
        self.stop.cancel();
        self.task.await.expect("commands at a steady rate")
    }
}

async fn run(bus: Bus, between: Duration, ahead: Range<i64>, mut numbers: StdRng, stop: CancellationToken) -> Vec<Sent> {
    let mut ticks = tokio::time::interval(between);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut unanswered, mut sent) = (JoinSet::new(), Vec::new());
    let mut number = 0;
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let (bus, call, ahead) = (bus.clone(), format!("call-{number}"), numbers.random_range(ahead.clone()));
        number += 1;
        unanswered.spawn(async move { Sent::send(&bus, call, ahead).await });
        while let Some(answered) = unanswered.try_join_next() {
            sent.push(answered.expect("a command"));
        }
        if unanswered.len() >= UNANSWERED_MAX {
            sent.extend(unanswered.join_next().await.map(|answered| answered.expect("a command")));
        }
    }
    sent.extend(unanswered.join_all().await);
    sent
}

/// Commands and events, compared.
#[derive(Debug)]
pub struct Account {
    pub commands: usize,
    pub acknowledged: usize,
    pub events: usize,
    /// Events beyond the first of a command.
    pub repeated: usize,
    /// Of those, how many say that they are the same as an earlier one.
    pub repeated_with_same_id: usize,
    /// From when a command was due, or stored by the broker if that was later, to when its event was in the stream: the longest.
    pub longest_micros: i64,
}

impl Account {
    /// Fails the test when an acknowledged command has no event, an event came early, or one belongs to no command.
    fn of(sent: &[Sent], messages: &[Message]) -> Self {
        let by_call: HashMap<&str, &Sent> = sent.iter().map(|sent| (sent.call.as_str(), sent)).collect();
        let (mut first, mut ids, mut repeated, mut repeated_with_same_id) = (HashMap::new(), HashSet::new(), 0, 0);
        for event in messages.iter().map(Event::read) {
            let sent = by_call.get(event.call.as_str()).unwrap_or_else(|| panic!("an event without a command: {event:?}"));
            assert!(event.at >= sent.due && event.reached_at >= sent.due, "early: {event:?}, {sent:?}");
            let is_known = !ids.insert(event.id.clone());
            if first.contains_key(event.call.as_str()) {
                repeated += 1;
                repeated_with_same_id += usize::from(is_known);
            } else {
                first.insert(event.call.clone(), event.at);
            }
        }
        let acknowledged: Vec<&Sent> = sent.iter().filter(|sent| sent.acknowledged.is_some()).collect();
        let lost: Vec<&&Sent> = acknowledged.iter().filter(|sent| !first.contains_key(&sent.call)).collect();
        assert!(lost.is_empty(), "{} of {} acknowledged commands have no event: {lost:?}", lost.len(), acknowledged.len());
        let waited = |sent: &&Sent| first[&sent.call] - sent.due.max(sent.acknowledged.unwrap_or_default());
        Self {
            commands: sent.len(),
            acknowledged: acknowledged.len(),
            events: messages.len(),
            repeated,
            repeated_with_same_id,
            longest_micros: acknowledged.iter().map(waited).max().unwrap_or_default(),
        }
    }

    /// Waits for the events of all acknowledged commands, but not longer than `limit`, and compares.
    pub async fn settle(sent: &[Sent], events: &mut Witness, limit: Duration) -> Self {
        let deadline = tokio::time::Instant::now() + tolerated(limit);
        while !Self::is_complete(sent, events.read().await) && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        Self::of(sent, events.read().await)
    }

    fn is_complete(sent: &[Sent], messages: &[Message]) -> bool {
        if messages.len() < sent.iter().filter(|sent| sent.acknowledged.is_some()).count() {
            return false;
        }
        let calls: HashSet<String> = messages.iter().map(|message| Event::read(message).call).collect();
        sent.iter().all(|sent| sent.acknowledged.is_none() || calls.contains(&sent.call))
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commands, acknowledged, events, repeated, .. } = self;
        let longest = self.longest_micros as f64 / 1e6;
        write!(
            f,
            "{commands} commands, {acknowledged} of them acknowledged, {events} events, {repeated} of them repeated; the longest wait \
             for an event was {longest:.2} s"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use async_nats::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::rig::instant;

    const DUE: i64 = 1_800_000_000_000_000;

    fn sent(call: &str, is_acknowledged: bool) -> Sent {
        Sent { call: call.to_owned(), due: DUE, acknowledged: is_acknowledged.then_some(DUE - 500_000) }
    }

    fn event(call: &str, id: &str, at: i64) -> Message {
        let payload = json!({"tenantId": TENANT, "serviceCallId": call, "reachedAt": instant(at)});
        let body = json!({"id": id, "type": "DueTimeReached", "tenantId": TENANT, "timestampMs": at / 1000, "payload": payload});
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", id);
        let subject = format!("timer.events.due.{TENANT}");
        Message { subject, headers, body: body.to_string().into(), at, sequence: 1 }
    }

    #[test]
    fn commands_and_events_that_agree_are_counted() {
        let sent = [sent("a", true), sent("b", false), sent("c", true)];
        let events = [event("a", "1", DUE), event("c", "2", DUE + 700_000), event("a", "1", DUE + 5), event("c", "3", DUE + 9)];
        let account = Account::of(&sent, &events);
        assert_eq!((account.commands, account.acknowledged, account.events), (3, 2, 4));
        assert_eq!((account.repeated, account.repeated_with_same_id, account.longest_micros), (2, 1, 700_000));
        assert!(Account::is_complete(&sent, &events) && !Account::is_complete(&sent, &events[..1]));
    }

    #[test]
    fn planted_faults_are_found() {
        let acknowledged = [sent("a", true)];
        for (fault, events) in [
            ("lost", vec![]),
            ("early", vec![event("a", "1", DUE - 1)]),
            ("asked for by no command", vec![event("a", "1", DUE), event("z", "2", DUE)]),
        ] {
            assert!(catch_unwind(|| Account::of(&acknowledged, &events)).is_err(), "{fault}");
        }
        let mut other_place = event("a", "1", DUE);
        other_place.subject = "timer.events.due.other".to_owned();
        assert!(catch_unwind(|| Event::read(&other_place)).is_err(), "another tenant's subject");
    }
}
