//! Which receivers timers call, remembered for those that were asked about: a summary does not say it, and lists of the same timers are
//! rendered again and again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use commands::Summary;
use domain::TimerId;
use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use crate::visitor::Visitor;

/// How many timers are remembered; beyond, all of them are forgotten.
const REMEMBERED_MAX: usize = 20_000;
/// How many timers are read at the same time.
const READ_AT_ONCE: usize = 8;

/// The receiver as a filter names it; a timer that calls nothing has none.
pub(crate) type Destination = Option<Arc<str>>;

/// The receivers that are known, by timer and revision: another revision may call another receiver.
#[derive(Default)]
pub(crate) struct KnownDestinations(Mutex<HashMap<(TimerId, u32), Destination>>);

impl KnownDestinations {
    fn state(&self) -> MutexGuard<'_, HashMap<(TimerId, u32), Destination>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, id: TimerId, revision: u32, destination: Destination) {
        let mut state = self.state();
        if state.len() >= REMEMBERED_MAX {
            state.clear();
        }
        state.insert((id, revision), destination);
    }
}

/// The receivers of these timers, of as many as can be told within this time: those that were told before take none of it. The viewer
/// has found the timers itself, so that it may know of them.
pub(crate) async fn read(visitor: &Visitor, summaries: &[Summary], time_max: Duration) -> HashMap<TimerId, Destination> {
    let known = &visitor.shared.known_destinations;
    let (mut told, mut unknown) = (HashMap::with_capacity(summaries.len()), Vec::new());
    {
        let state = known.state();
        for summary in summaries {
            match state.get(&(summary.id, summary.revision)) {
                Some(destination) => _ = told.insert(summary.id, destination.clone()),
                None => unknown.push((summary.id, summary.revision)),
            }
        }
    }
    let until = Instant::now() + time_max;
    let reading =
        stream::iter(unknown).map(async |(id, revision): (TimerId, u32)| (id, revision, visitor.commands.get(id).await));
    let mut reading = std::pin::pin!(reading.buffered(READ_AT_ONCE));
    while let Ok(Some((id, revision, timer))) = timeout_at(until, reading.next()).await {
        let Ok(timer) = timer else { continue };
        let destination: Destination = timer.definition.callback.address().map(|address| address.to_string().into());
        known.remember(id, revision, destination.clone());
        told.insert(id, destination);
    }
    told
}
