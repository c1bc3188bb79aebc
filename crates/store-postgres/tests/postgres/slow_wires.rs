//! Payloads that are large, on a wire that is slow: more than one answer may take, and no more than many may.

use store::{DueStore, MembershipStore, NodeId, TimerStore};
use store_conformance::timer;

use crate::{acquire_all, acquire_all_for, claim, everything_due, outages::behind_a_wire};

const PAYLOAD_BYTES: usize = 16 * 1024;
const TIMERS: u64 = 640;
/// All of the payloads take more than six seconds, and a call has five for each of its steps.
const BYTES_PER_SECOND: usize = 1_600 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn large_payloads_are_claimed_and_recovered_over_a_slow_wire() {
    let (direct, behind, proxy) = behind_a_wire(b"never said").await;
    let payload = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES - 2));
    let drafts = (0..TIMERS).map(|number| timer("http://a.example/").numbered(number).payload(&payload).build());
    direct.create(drafts.collect()).await.unwrap();
    let shard_leases = acquire_all(&direct).await;
    let due = everything_due(&direct).await;
    proxy.set_bytes_per_second(BYTES_PER_SECOND);

    let mut claimed = behind.claim(&claim(7, &shard_leases), &due).await.unwrap();

    assert_eq!(claimed.len(), due.len());
    let has_payload = |timer: &domain::Timer| timer.definition.callback.payload().is_some_and(|json| json.as_str() == payload);
    assert!(claimed.iter().all(|claimed| claimed.timer.as_ref().is_ok_and(has_payload)));

    direct.leave(NodeId(1)).await.unwrap();
    let shard_leases = acquire_all_for(&direct, NodeId(2)).await;
    let mut expired = behind.expired_claims(&shard_leases, 1_000).await.unwrap();
    expired.sort_by_key(|claimed| claimed.entry.id);
    claimed.sort_by_key(|claimed| claimed.entry.id);
    assert_eq!(expired.len(), claimed.len());
    for (expired, claimed) in expired.iter().zip(&claimed) {
        assert_eq!((expired.entry, expired.token, &expired.timer), (claimed.entry, claimed.token, &claimed.timer));
        assert!(shard_leases.contains(&expired.shard_lease));
    }
    assert_eq!(behind.expired_claims(&shard_leases, 7).await.unwrap().len(), 7);
}
