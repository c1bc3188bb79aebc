use std::collections::HashMap;

use domain::{Attempt, Headers, ReceivedAnswer, Status, Timer, TimerId, Timestamp};
use store::{EventStore, Happened, Recorded, StoreResult};

use crate::call;

/// What a client may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    Created,
    Changed,
    Attempt,
    Finished,
}

impl EventType {
    pub const ALL: [Self; 4] = [Self::Created, Self::Changed, Self::Attempt, Self::Finished];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Attempt => "attempt",
            Self::Finished => "finished",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A set of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTypes(u8);

impl EventTypes {
    pub const ALL: Self = Self(0b1111);

    pub fn of(types: impl IntoIterator<Item = EventType>) -> Self {
        Self(types.into_iter().fold(0, |set, kind| set | 1 << kind as u8))
    }

    pub const fn contains(self, kind: EventType) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// One thing that happened to a timer, as clients see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub kind: EventType,
    /// When it happened. Together with the type and the timer it identifies the event.
    pub at: Timestamp,
    pub position: Timestamp,
    /// A client that has seen this event, and those before it, has seen everything up to this position.
    pub resume: Timestamp,
    /// The timer as it stood when the event was read, without its payload and its follow-ups; with its status as the event says, if that is an end.
    pub timer: Timer,
    pub attempt: Option<Attempt>,
}

impl Event {
    /// About how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        let definition = &self.timer.definition;
        let attempt = self.attempt.as_ref().map_or(0, |attempt| {
            let answer = attempt.answer.as_ref().map_or(0, ReceivedAnswer::bytes);
            attempt.outcome.len() + attempt.detail.as_ref().map_or(0, String::len) + answer
        });
        size_of::<Self>()
            + definition.callback.endpoint.bytes()
            + definition.namespace.as_str().len()
            + definition.key.as_ref().map_or(0, |key| key.as_str().len())
            + definition.group.as_ref().map_or(0, |group| group.as_str().len())
            + definition.correlation_id.as_ref().map_or(0, |id| id.as_str().len())
            + definition.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
            + self.timer.last_error.as_ref().map_or(0, String::len)
            + attempt
    }
}

/// How many timers are read at once: they come with payloads of up to 256 KiB.
pub(super) const READ_AT_ONCE: usize = 100;

/// Reads what there is to say about events, at most [`READ_AT_ONCE`]. Those whose timer or attempt is gone are left out.
pub(super) async fn read(
    store: &dyn EventStore,
    recorded: &[Recorded],
    resume: impl Fn(&Recorded) -> Timestamp,
) -> StoreResult<Vec<Event>> {
    let mut ids: Vec<TimerId> = recorded.iter().map(|event| event.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let timers = call::reading(store.timers(&ids)).await?;
    let timers: HashMap<TimerId, Timer> = timers.into_iter().map(|timer| (timer.id(), without_payload(timer))).collect();
    let numbered = |event: &Recorded| match event.what {
        Happened::Attempted { seq } => Some((event.id, seq)),
        _ => None,
    };
    let of: Vec<(TimerId, i64)> = recorded.iter().filter_map(numbered).collect();
    let attempts = if of.is_empty() { Vec::new() } else { call::reading(store.attempts_at(&of)).await? };
    let mut attempts = attempts.into_iter();
    let mut events = Vec::with_capacity(recorded.len());
    for event in recorded {
        let attempt = numbered(event).and_then(|_| attempts.next().flatten());
        let Some(timer) = timers.get(&event.id).cloned() else { continue };
        let (kind, at, timer) = match event.what {
            Happened::Created { at } | Happened::Began { at } => (EventType::Created, at, timer),
            Happened::Changed { .. } => (EventType::Changed, event.position, timer),
            Happened::Attempted { .. } if attempt.is_none() => continue,
            Happened::Attempted { .. } => (EventType::Attempt, event.position, timer),
            Happened::Finished { at, status } | Happened::Ended { at, status } => {
                (EventType::Finished, at, as_it_ended(timer, at, status))
            }
        };
        events.push(Event { kind, at, position: event.position, resume: resume(event), timer, attempt });
    }
    Ok(events)
}

fn without_payload(mut timer: Timer) -> Timer {
    timer.definition.callback.payload = None;
    timer.definition.callback.headers = Headers::default();
    // They have payloads of their own.
    (timer.definition.options.on_success, timer.definition.options.on_failure) = (None, None);
    timer
}

/// A timer may have a new life by the time that its end is read.
fn as_it_ended(timer: Timer, at: Timestamp, status: Status) -> Timer {
    Timer { status, updated_at: at, ..timer }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rig::{Rig, plain};

    /// An event with that position, and nothing else that matters.
    pub(in super::super) fn event_at(position: Timestamp) -> Event {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let rig = Rig::new();
        let timer = runtime.block_on(rig.commands.create(plain())).unwrap().timer().clone();
        Event { kind: EventType::Created, at: position, position, resume: position, timer, attempt: None }
    }

    #[test]
    fn every_text_of_a_client_counts() {
        let event = event_at(Timestamp::from_micros(1));
        let with = |change: fn(&mut Timer)| {
            let mut changed = event.clone();
            change(&mut changed.timer);
            changed.bytes() - event.bytes()
        };
        assert_eq!(with(|timer| timer.definition.key = domain::Key::parse("12345").ok()), 5);
        assert_eq!(with(|timer| timer.definition.group = domain::Group::parse("1234").ok()), 4);
        assert_eq!(with(|timer| timer.definition.correlation_id = domain::CorrelationId::parse("123").ok()), 3);
        assert_eq!(with(|timer| timer.last_error = Some("12".to_owned())), 2);
        assert!(event.bytes() > size_of::<Event>(), "the URL counts");
    }

    #[test]
    fn a_set_of_types_has_those_it_was_made_of() {
        assert_eq!(EventTypes::of(EventType::ALL), EventTypes::ALL);
        let two = EventTypes::of([EventType::Created, EventType::Finished]);
        let has: Vec<_> = EventType::ALL.into_iter().filter(|kind| two.contains(*kind)).collect();
        assert_eq!(has, [EventType::Created, EventType::Finished]);
        for kind in EventType::ALL {
            assert_eq!(EventType::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(EventType::parse("Created"), None);
    }
}
