//! A consumer over a broker in memory and a store with planned faults, for tests.

use std::sync::Arc;

use commands::{Commands, Rules, Searches, Stats, Stores};
use domain::{
    Callback, Caller, Clock, CorrelationId, Definition, Delivery, Horizon, Key, KindSet, ManualClock, Namespace, Options,
    RequestedTime, Span, Status, Timer, TimerId, Timestamp,
};
use store::{Filter, Store, TimerStore};
use store_testing::{Faulty, Model};

use crate::{CommandConsumer, Memory};

/// 2030-01-01.
pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);

pub(crate) struct Rig {
    pub broker: Arc<Memory>,
    pub store: Arc<Faulty<Model>>,
    pub commands: Commands,
}

/// Commands over this store that allow due times up to an hour ahead.
pub(crate) fn commands(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Commands {
    let horizon = Horizon { min_delay: Span::from_secs(5), max_horizon: Some(Span::from_secs(3600)) };
    let rules = Rules { horizon, callbacks: KindSet::REQUESTABLE, callback_check: Arc::new(|_, _| Ok(())) };
    Commands {
        stores: Stores::of(store),
        clock,
        rules,
        nudge: Arc::new(|_| {}),
        caller: Caller::Administrator,
        searches: Searches::default(),
        stats: Stats::default(),
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let store = Arc::new(Faulty::new(Arc::new(Model::new(clock.clone(), 1))));
        let commands = commands(store.clone(), clock);
        Self { broker: Arc::default(), store, commands }
    }

    pub(crate) fn consumer(&self) -> CommandConsumer {
        CommandConsumer::new(self.broker.clone(), self.commands.clone())
    }

    /// How many timers exist. Bypasses the planned faults.
    pub(crate) async fn timers(&self) -> u64 {
        self.store.count(&Filter::default(), store::SEARCH_BUDGET).await.unwrap().timers
    }

    pub(crate) async fn timer(&self, key: &str) -> Option<Timer> {
        let id = TimerId::keyed(&Namespace::parse("acme").unwrap(), &Key::parse(key).unwrap());
        self.store.get(id).await.unwrap()
    }
}

/// A command of the tenant `acme` that is due this long after [`NOW`].
pub(crate) fn command(key: &str, after: Span) -> String {
    format!(r#"{{"tenantId":"acme","serviceCallId":"{key}","dueAt":"{}"}}"#, NOW.saturating_add(after))
}

/// A due timer of the tenant `acme`.
pub(crate) fn timer(key: Option<&str>, correlation_id: Option<&str>) -> Timer {
    let namespace = Namespace::parse("acme").unwrap();
    let at = Timestamp::parse("at", "2030-01-31T12:00:00Z").unwrap();
    let definition = Definition {
        id: TimerId::keyed(&namespace, &Key::parse(key.unwrap_or("none")).unwrap()),
        namespace,
        key: key.map(|key| Key::parse(key).unwrap()),
        asked: RequestedTime::At(at),
        callback: Callback::EVENT,
        metadata: None,
        correlation_id: correlation_id.map(|id| CorrelationId::parse(id).unwrap()),
        retry_policy: None,
        delivery: Delivery::AtLeastOnce,
        group: None,
        options: Options::default(),
    };
    Timer {
        definition,
        execute_at: at,
        status: Status::Executing,
        attempt: 1,
        last_error: None,
        executed_at: None,
        created_at: at,
        updated_at: at,
        revision: 1,
        pause: None,
    }
}
