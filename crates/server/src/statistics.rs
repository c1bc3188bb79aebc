//! What is gathered for operators: written down beside everything else, and shown by the API.

use std::sync::Arc;

use commands::{Live, NamespaceSettings, ShardMoves, Stats};
use delivery::NamespaceRules;
use domain::Clock;
use engine::Recorder;
use store::{Cluster, NodeId, Store};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// The recorder of this process, and the tasks that write down what it has.
pub struct Statistics {
    recorder: Arc<Recorder>,
    clock: Arc<dyn Clock>,
    shard_moves: ShardMoves,
    recording: JoinHandle<()>,
    watching: JoinHandle<()>,
    /// Dropped when the last call has ended.
    firing: oneshot::Sender<()>,
}

impl Statistics {
    pub fn start(node: NodeId, store: &Arc<dyn Store>, clock: &Arc<dyn Clock>, stop: &CancellationToken) -> Self {
        let recorder = Arc::new(Recorder::of(node));
        let (firing, drained) = oneshot::channel();
        let drained = async move { drained.await.unwrap_or_default() };
        let shard_moves = ShardMoves::default();
        let seen = shard_moves.clone();
        let observe = move |cluster: &Cluster| seen.observe(cluster);
        let recording = Arc::clone(&recorder).run(store.clone(), Arc::clone(clock), stop.clone(), drained);
        Self {
            recorder,
            clock: Arc::clone(clock),
            recording: tokio::spawn(recording),
            watching: tokio::spawn(scheduler::tasks::watch_cluster(store.clone(), observe, stop.clone())),
            shard_moves,
            firing,
        }
    }

    pub fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.recorder)
    }

    /// What the API shows beside the store.
    pub fn shown(&self, rules: &NamespaceRules) -> Stats {
        let (created, digests, receivers, clock) = (self.recorder(), self.recorder(), self.recorder(), Arc::clone(&self.clock));
        let live = Live {
            created: Arc::new(move |namespace, at| created.created(namespace, at)),
            digests: Arc::new(move || digests.digests()),
            receivers: Arc::new(move || receivers.receivers(clock.now())),
        };
        let settings = rules.summaries().map(|summary| NamespaceSettings {
            namespace: summary.namespace.clone(),
            retry_policy: summary.retry_policy,
            has_signing_secret: summary.has_signing_secret,
            has_subjects: summary.has_subjects,
        });
        Stats::new(live, settings.collect(), self.shard_moves.clone())
    }

    /// Writes down what the last calls did. To be called when they are over.
    pub async fn finish(self) {
        let Self { recording, watching, firing, .. } = self;
        watching.abort();
        drop(firing);
        if let Err(error) = recording.await {
            tracing::error!(%error, "the statistics of the last seconds are lost");
        }
    }
}
