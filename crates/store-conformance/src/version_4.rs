//! What the program of version 4 left in the fixtures `version_4.sql` of the stores, as the contract shows it after the upgrade. The
//! program got the same requests on each store, and was killed while the last of them was being called.

use domain::{
    Access, Callback, CorrelationId, Delivery, Namespace, Namespaces, NewTimer, Next, RetryPolicy, Rights, Shard, Status,
    TimerId, Timestamp,
};
use store::{Claim, ClaimToken, Created, Filter, ListQuery, Member, NodeId, OnLocked, SEARCH_BUDGET, ShardCursor, Store};

use crate::{Draft, NOW, ahead, millis, secs, stage::LONG, timer};

/// 2030-01-01T00:00:00Z.
const AT: Timestamp = Timestamp::from_micros(1_893_456_000_000_000);

const BROKEN: &str = "answered 500 Internal Server Error (POST http://127.0.0.1:18099/broken)";
const BUSY: &str = "answered 503 Service Unavailable (POST http://127.0.0.1:18099/busy)";

/// A timer with a key: the request that means the same, and how far the program got with it.
struct Left {
    new: NewTimer,
    status: Status,
    attempt: u32,
    revision: u32,
    last_error: Option<&'static str>,
}

impl Left {
    fn of(draft: Draft, callback: &str, status: Status) -> Self {
        let mut new = draft.build();
        new.definition.callback = Callback::from_json(callback).unwrap();
        Self { new, status, attempt: 0, revision: 1, last_error: None }
    }

    fn attempted(self, last_error: Option<&'static str>) -> Self {
        Self { attempt: 1, last_error, ..self }
    }

    fn id(&self) -> TimerId {
        self.new.definition.id
    }
}

fn in_default(key: &str) -> Draft {
    timer("http://a.example/").key(key)
}

fn in_tenant(key: &str) -> Draft {
    in_default(key).namespace("tenant")
}

fn policy(json: &str) -> RetryPolicy {
    RetryPolicy::from_json(json).unwrap()
}

fn pending() -> Vec<Left> {
    let after = in_tenant("after")
        .after(secs(31_536_000))
        .at_most_once()
        .retry_policy(policy(r#"{"max_retries":3,"initial_interval":"1s","backoff_multiplier":2.0,"max_interval":"60s"}"#));
    let retried = in_default("retried")
        .after(millis(1))
        .retry_policy(policy(r#"{"max_retries":3,"initial_interval":"30m","backoff_multiplier":2.0,"max_interval":"30m"}"#));
    let changed = in_default("changed").due_at(AT.saturating_add(secs(86_400))).metadata(r#"{"n":2}"#);
    vec![
        Left::of(
            in_default("at").due_at(AT).metadata(r#"{"team":"é"}"#).correlation_id("c-1"),
            r#"{"type":"http","url":"https://a.example/x","headers":{"X-A":"1"},"payload":{"é": 1.0}}"#,
            Status::Pending,
        ),
        Left::of(after, r#"{"type":"http","url":"https://b.example/","timeout":"5s"}"#, Status::Pending),
        Left::of(
            in_default("nats").due_at(AT),
            r#"{"type":"nats","topic":"orders.late","key":"message-key","payload":null,"jetstream":true}"#,
            Status::Pending,
        ),
        Left::of(retried, r#"{"type":"http","url":"http://127.0.0.1:18099/busy"}"#, Status::Pending).attempted(Some(BUSY)),
        Left { revision: 2, ..Left::of(changed, r#"{"type":"http","url":"https://a.example/x"}"#, Status::Pending) },
        Left::of(
            in_tenant("v1").due_at(AT),
            r#"{"type":"http","url":"https://a.example/v1","payload":{"n":1},"protocol":"timer"}"#,
            Status::Pending,
        ),
    ]
}

fn completed() -> Left {
    let callback = r#"{"type":"http","url":"http://127.0.0.1:18099/ok","payload":[1,2]}"#;
    Left::of(in_tenant("completed").after(millis(1)), callback, Status::Completed).attempted(None)
}

fn failed() -> Left {
    let callback = r#"{"type":"http","url":"http://127.0.0.1:18099/broken"}"#;
    Left::of(in_default("failed").after(millis(1)), callback, Status::Failed).attempted(Some(BROKEN))
}

fn canceled() -> Left {
    Left::of(in_tenant("canceled").due_at(AT), r#"{"type":"http","url":"https://a.example/x"}"#, Status::Canceled)
}

fn executing() -> Left {
    let callback = r#"{"type":"http","url":"http://127.0.0.1:18099/hang"}"#;
    Left::of(in_default("executing").after(millis(1)), callback, Status::Executing).attempted(None)
}

fn keyed() -> Vec<Left> {
    pending().into_iter().chain([completed(), failed(), canceled(), executing()]).collect()
}

/// Every timer, attempt and key is as the program left it.
pub async fn is_carried_over(store: &dyn Store) {
    for left in keyed() {
        let timer = store.get(left.id()).await.unwrap().unwrap();
        let standing = (timer.status, timer.attempt, timer.revision, timer.last_error.as_deref());
        assert_eq!(standing, (left.status, left.attempt, left.revision, left.last_error), "{:?}", left.new);
        assert_eq!(timer.definition, left.new.definition);
        let attempts = store.attempts(left.id()).await.unwrap();
        let attempts: Vec<_> =
            attempts.iter().map(|attempt| (attempt.number, attempt.outcome.as_str(), attempt.detail.as_deref())).collect();
        let failure = left.last_error.map(|error| (1, "status_5xx", Some(error)));
        assert_eq!(attempts, failure.into_iter().collect::<Vec<_>>(), "{:?}", left.new);
    }
    let keys = store.keys().await.unwrap();
    let tenant = Namespace::parse("tenant").unwrap();
    let access = Access { namespaces: Namespaces::Only(vec![tenant.clone()]), rights: Rights::Read };
    let keys: Vec<_> = keys.iter().map(|key| (key.name.as_str(), &key.access, key.revoked_at)).collect();
    assert_eq!(keys, [("ops", &access, None)]);

    // One has no key, and its id in its URL.
    let listed = store.list(&ListQuery { limit: 20, ..ListQuery::default() }).await.unwrap().timers;
    assert_eq!(listed.len(), keyed().len() + 1);
    let keyed: Vec<_> = keyed().iter().map(Left::id).collect();
    let unkeyed = listed.iter().find(|timer| !keyed.contains(&timer.id)).unwrap().id;
    let url = format!("https://a.example/short/{unkeyed}");
    let unkeyed = store.get(unkeyed).await.unwrap().unwrap();
    assert_eq!(unkeyed.definition.callback, timer(&url).build().definition.callback);
    for (status, namespaces, timers) in [
        (Some(Status::Pending), vec![], 7),
        (Some(Status::Executing), vec![], 1),
        (Some(Status::Completed), vec![tenant.clone()], 1),
        (Some(Status::Failed), vec![], 1),
        (Some(Status::Canceled), vec![tenant.clone()], 1),
        (None, vec![tenant], 4),
    ] {
        let filter = Filter { status: status.into_iter().collect(), namespaces, ..Filter::default() };
        assert_eq!(store.count(&filter, SEARCH_BUDGET).await.unwrap(), timers, "{filter:?}");
    }
}

/// A create that is repeated is answered with the timer that is there, and one that means something else is refused.
pub async fn knows_repeated_creates(store: &dyn Store) {
    let repeated = store.create(keyed().into_iter().map(|left| left.new).collect()).await.unwrap();
    assert!(repeated.iter().all(|created| matches!(created, Created::Existing(_))), "{repeated:?}");
    let mut others: Vec<_> = pending().into_iter().map(|left| left.new).collect();
    for new in &mut others {
        new.definition.correlation_id = Some(CorrelationId::parse("another").unwrap());
    }
    let refused = store.create(others).await.unwrap();
    assert!(refused.iter().all(|created| matches!(created, Created::Conflict(_))), "{refused:?}");
}

/// The first node of this version takes the shards over, with what the program was calling, and fires what is due.
pub async fn goes_on(store: &dyn Store) {
    let node = NodeId(1);
    store.heartbeat(&Member::new(node), LONG).await.unwrap();
    let shards: Vec<_> = (0..store.shards()).map(Shard).collect();
    let shard_leases = store.acquire(node, &shards).await.unwrap();
    assert_eq!(shard_leases.len(), shards.len());
    let left = store.expired_claims(&shard_leases, 10).await.unwrap();
    assert_eq!(left.iter().map(|claimed| (claimed.entry.id, claimed.attempt)).collect::<Vec<_>>(), [(executing().id(), 1)]);
    assert_eq!(store.settle(&[left[0].settle(Next::Completed { at: ahead(secs(60)) })]).await.unwrap(), [true]);

    let from: Vec<_> = shards.into_iter().map(|shard| ShardCursor { shard, after: None }).collect();
    let mut due = store.due(&from, AT.saturating_add(secs(172_800)), 100).await.unwrap();
    due.sort_unstable();
    assert_eq!(due.len(), 7);
    // It waits for its second attempt, half an hour after the first.
    let retried = in_default("retried").id();
    assert!(due[0].id == retried && due[0].at > ahead(secs(1_500)) && due[0].at < ahead(secs(2_100)), "{:?}", due[0]);
    let claim = Claim { token: ClaimToken(7), shard_leases, lease: LONG, on_locked: OnLocked::Skip };
    let claimed = store.claim(&claim, &due[..1]).await.unwrap();
    assert_eq!(claimed.len(), 1);
    let failed_again = Next::Failed { at: ahead(secs(3_600)), error: "HTTP 500".to_owned() };
    assert_eq!(store.settle(&[claimed[0].settle(failed_again)]).await.unwrap(), [true]);

    let ids: Vec<_> = keyed().iter().map(Left::id).collect();
    let canceled = store.cancel_all(&ids, NOW).await.unwrap();
    assert_eq!(canceled.iter().filter(|canceled| **canceled).count(), 5);
    assert_eq!(store.get(in_tenant("after").id()).await.unwrap().unwrap().definition.delivery, Delivery::AtMostOnce);
    assert_eq!(store.purge(ahead(secs(7_200)), 100).await.unwrap(), 10);
    assert_eq!(store.count(&Filter::default(), SEARCH_BUDGET).await.unwrap(), 1);
}
