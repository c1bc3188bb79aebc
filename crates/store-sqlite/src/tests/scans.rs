use std::{sync::mpsc, time::Duration};

use tokio::{sync::oneshot, time::timeout};

use super::Place;
use crate::SCANS_MAX;

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_scan_that_is_no_longer_waited_for_has_its_permit_until_it_ends() {
    let place = Place::new();
    let store = place.open();
    let (end, ended) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel();
    let scan = store.scan(move |_| {
        begin.send(()).unwrap();
        ended.recv().unwrap_or_default();
        Ok(())
    });
    tokio::select! {
        _ = scan => panic!("it ended by itself"),
        begun = begun => begun.unwrap(),
    }
    assert_eq!(store.scans.available_permits(), SCANS_MAX - 1);
    drop(end);
    let all = u32::try_from(SCANS_MAX).unwrap();
    drop(timeout(LONG, store.scans.acquire_many(all)).await.expect("the permit comes back").unwrap());
}
