//! One run of several services under load and faults, and everything that must be true at its end.
//!
//! ```text
//!                load ──▶ APIs ──▶ node ──link──▶ database
//!   the test ── faults ──────────▶ node ──link──▶     │
//!                                  node ──link──▶     │
//!        watch ── /cluster ──────────┘              counts
//! ```
//!
//! What is left to chance comes from one seed. A run that fails prints it, and `FAULT_SEED` repeats its choices; `FAULT_SCALE`
//! multiplies the number of faults (see `make fault`).

mod watch;

use std::{sync::Arc, time::Duration};

use crate::{
    history::{Apis, Fault, History, Load, Mixture, Summary},
    rig::{Chance, Client, Nodes, Receiver, tolerated},
};
use watch::Watch;

const DRAIN: Duration = Duration::from_secs(60);
/// Five seconds are promised until timers fire again; the rest is for a busy machine.
const WAIT_MILLIS_MAX: f64 = 8_000.0;

pub struct Trial {
    name: &'static str,
    pub nodes: Nodes,
    pub receiver: Receiver,
    pub apis: Apis,
    pub history: Arc<History>,
    pub faults: Vec<Fault>,
    pub chance: Chance,
    load: Option<Load>,
    watch: Option<Watch>,
}

/// What a run came to.
pub struct Outcome {
    pub summary: Summary,
    /// For how much of the time each shard had an owner, at the least.
    pub least_held: f64,
}

impl Trial {
    /// `receiver` takes up to `call_time` for a call.
    pub fn start(name: &'static str, nodes: Nodes, receiver: Receiver, call_time: Duration) -> Self {
        let apis = Apis::new(nodes.clients());
        let history = Arc::new(History::new(call_time));
        let (chance, watch) = (Chance::new(name), Some(Watch::start(apis.clone())));
        Self { name, nodes, receiver, apis, history, faults: Vec::new(), chance, load: None, watch }
    }

    pub fn load(&mut self, mixture: Mixture) {
        let url = self.receiver.url("/trial");
        self.load = Some(Load::start(&self.apis, url, &self.history, mixture, self.chance.seed()));
    }

    /// Callers go to these nodes only.
    pub fn open_apis(&self, numbers: impl IntoIterator<Item = usize>) {
        self.apis.set(numbers.into_iter().map(|number| self.nodes.services[number].client()).collect());
    }

    /// Waits until so many more calls have arrived: the work goes on.
    pub async fn wait_for_calls(&self, more: usize) {
        self.receiver.wait_for(self.receiver.count() + more, Duration::from_secs(20)).await;
    }

    /// Ends the load, waits until everything is done, and checks it all.
    pub async fn finish(mut self) -> (Nodes, Outcome) {
        if let Some(load) = self.load.take() {
            load.stop().await;
        }
        let client = self.apis.any(self.chance.numbers());
        client.wait_until_finished(DRAIN).await;
        let least_held = self.watch.take().expect("it is stopped once").stop().await;
        self.history.read_back(&client).await;
        let summary = self.history.check(&self.receiver.calls(), &self.faults);
        println!("{}: {} faults: {summary}", self.name, self.faults.len());
        assert!(summary.waits.max() < tolerated(WAIT_MILLIS_MAX), "{summary}");
        self.check_states(&client, &summary).await;
        (self.nodes, Outcome { summary, least_held })
    }

    /// Every timer that was acknowledged is there once and has ended; of those without an answer, some are.
    async fn check_states(&self, client: &Client, summary: &Summary) {
        let [pending, executing, completed, failed, canceled] =
            ["pending", "executing", "completed", "failed", "canceled"].map(|status| client.count(status));
        let (pending, executing, failed) = (pending.await, executing.await, failed.await);
        assert_eq!((pending, executing, failed), (0, 0, 0), "pending, executing, failed");
        let ended = usize::try_from(completed.await + canceled.await).expect("few");
        assert!((summary.created..=summary.created + summary.unanswered).contains(&ended), "{ended} timers, {summary}");
        let keys = self.nodes.backend.timers_and_keys();
        assert_eq!(keys, (ended, ended), "one timer for each key");
    }
}
