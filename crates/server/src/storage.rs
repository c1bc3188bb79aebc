//! Whether the store can be written, for `/healthz`, and the way back once it can.

use std::{sync::Arc, time::Duration};

use api::{HealthItem, Reading};
use store::{HealthStore, StoreResult, Writable};
use tokio_util::sync::CancellationToken;

use crate::stores::STORES;

const INTERVAL: Duration = Duration::from_secs(1);

/// `storage` in `/healthz`.
pub fn health(writable: Arc<Writable>) -> HealthItem {
    HealthItem {
        name: "storage",
        read: Arc::new(move || match writable.refusal() {
            None => Reading { value: "writable".into(), well: true },
            Some(cause) => Reading { value: told(&cause).into(), well: false },
        }),
    }
}

/// What a client may know of the cause: it may name files and hosts, which are for the log.
fn told(cause: &str) -> &'static str {
    let public = STORES.iter().flat_map(|kind| kind.public_causes).copied().find(|public| *public == cause);
    public.unwrap_or("cannot be written: the disk is full, or writing is not allowed")
}

/// Once a second: when nothing else writes, nothing else would find out that the store can be written again.
pub async fn watch(store: Arc<dyn HealthStore>, writable: Arc<Writable>, stop: CancellationToken) {
    let mut was_refused = false;
    while !stop.is_cancelled() {
        let refusal = writable.refusal();
        match &refusal {
            Some(cause) if !was_refused => tracing::error!(cause, "the store cannot be written"),
            None if was_refused => tracing::info!("the store can be written again"),
            _ => {}
        }
        was_refused = refusal.is_some();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = tokio::time::sleep(INTERVAL) => drop(probe_once(store.as_ref(), &writable).await),
        }
    }
}

/// Tries a write if the last one was refused; says whether one was tried, and how that ended. What it shows is noted by the store.
async fn probe_once(store: &dyn HealthStore, writable: &Writable) -> Option<StoreResult<()>> {
    writable.refusal()?;
    Some(store.probe().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_no_file() {
        assert_eq!(told(store_sqlite::NOT_IN_PLACE), store_sqlite::NOT_IN_PLACE);
        let cause = "could not extend file \"base/5/16384\": No space left on device (53100)";
        assert_eq!(told(cause), "cannot be written: the disk is full, or writing is not allowed");
    }
}
