//! Many timers at once: nothing is read that is not asked for.

use std::{collections::HashSet, time::Duration};

use domain::{Namespace, Next, Shard, Span, Status, TimerId};
use store::{Claim, Count, Created, DueStore, Filter, ListQuery, Order, ShardCursor, Sharded, Sort, Store, TimerStore};
use store_conformance::{NOW, timer};

use crate::{acquire_all, all_shards, claim, everything_due, open};

/// Longer than anything takes here, on a busy machine, too.
const TIMEOUT: Duration = Duration::from_secs(60);

/// `count` timers in one namespace, all of them pending and due at the same moment.
fn fill(url: &str, namespace: &str, count: usize) {
    let now = NOW.as_micros();
    let statements = format!(
        "WITH new AS (
            INSERT INTO definition (id, namespace, asked, execute_at, callback_type, callback_config, delivery, fingerprint,
                revision, created_at, updated_at)
            SELECT gen_random_uuid(), '{namespace}', {now}, {now}, 'http', '{{}}', 'at_least_once', '\\x00', 1, {now}, {now}
            FROM generate_series(1, {count})
            RETURNING id, execute_at
        )
        INSERT INTO due (shard, id, at, attempt, destination)
        SELECT (get_byte(uuid_send(id), 14) * 256 + get_byte(uuid_send(id), 15)) % 64, id, execute_at, 0, 1 FROM new"
    );
    throwaway::postgres().query(url, &statements);
}

fn filter(namespace: Option<&str>, status: Option<Status>) -> Filter {
    Filter {
        namespaces: namespace.map(|text| Namespace::parse(text).unwrap()).into_iter().collect(),
        status: status.into_iter().collect(),
        ..Filter::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn few_are_counted_and_many_are_estimated() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    fill(&url, "small", 300);
    fill(&url, "large", 120_000);
    throwaway::postgres().query(&url, "ANALYZE");
    let is_near = |count: Count, truth: u64| count.is_estimate && count.timers.abs_diff(truth) < truth / 5;
    for (namespace, status, truth) in [
        (None, None, 120_300),
        (None, Some(Status::Pending), 120_300),
        (Some("large"), None, 120_000),
        (Some("large"), Some(Status::Pending), 120_000),
    ] {
        let count = store.count(&filter(namespace, status), Duration::ZERO).await.unwrap();
        assert!(is_near(count, truth), "{namespace:?} {status:?}: {count:?}");
    }
    for (namespace, status, truth) in [
        (Some("small"), None, 300),
        (Some("small"), Some(Status::Pending), 300),
        (Some("small"), Some(Status::Executing), 0),
        (Some("default"), None, 0),
        (None, Some(Status::Completed), 0),
    ] {
        assert_eq!(store.count(&filter(namespace, status), TIMEOUT).await.unwrap(), truth, "{namespace:?} {status:?}");
    }
}

/// Whatever the statistics say: they may be older than the table.
#[tokio::test(flavor = "multi_thread")]
async fn an_estimate_is_never_below_what_was_counted() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    fill(&url, "large", 10);
    throwaway::postgres().query(&url, "ANALYZE");
    fill(&url, "large", 100_001);
    let count = store.count(&filter(Some("large"), None), Duration::ZERO).await.unwrap();
    assert!(count.is_estimate && count.timers >= 250, "{count:?}");
    let count = store.count(&filter(None, Some(Status::Pending)), Duration::ZERO).await.unwrap();
    assert!(count.is_estimate && count.timers >= 1_000, "{count:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_due_at_one_moment_is_seen_page_by_page() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    fill(&url, "large", 20_000);
    let (mut seen, mut pages): (HashSet<TimerId>, usize) = (HashSet::new(), 0);
    let mut from: Vec<_> = all_shards(&store).into_iter().map(|shard| ShardCursor { shard, after: None }).collect();
    while !from.is_empty() {
        let page = store.due(&from, NOW, 100).await.unwrap();
        for cursor in &mut from {
            let of_shard = page.iter().filter(|entry| entry.id.shard(store.shards()) == cursor.shard);
            cursor.after = of_shard.max().map(|last| (last.at, last.id));
        }
        from.retain(|cursor| cursor.after.is_some());
        assert!(page.iter().all(|entry| seen.insert(entry.id)), "nothing is seen twice");
        pages += 1;
    }
    assert_eq!(seen.len(), 20_000);
    assert!(pages < 10, "{pages}");
}

/// All that have this status, in pages of `limit`.
async fn listed(store: &impl Store, status: Status, limit: u32) -> Vec<TimerId> {
    let filter = filter(None, Some(status));
    let mut query = ListQuery { filter, sort: Sort::CreatedAt, order: Order::Descending, limit, ..ListQuery::default() };
    let mut all = Vec::new();
    loop {
        let page = store.list(&query).await.unwrap();
        all.extend(page.timers.iter().filter(|timer| timer.status == status).map(|timer| timer.id));
        query.after = page.next;
        if page.next.is_none() {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_of_a_status_are_listed_whether_they_are_many_or_few_and_far_apart() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    fill(&url, "large", 3_000);
    // The last ones in the order of the list, behind more than is looked at for a page, and one in the midst of the others.
    let end = "WITH gone AS (
                   DELETE FROM due WHERE id IN (
                       (SELECT id FROM due ORDER BY id LIMIT 5) UNION ALL (SELECT id FROM due ORDER BY id OFFSET 1500 LIMIT 1)
                   ) RETURNING id
               )
               INSERT INTO outcome (id, status, attempt, executed_at, finished_at) SELECT id, 'completed', 1, 0, 0 FROM gone";
    throwaway::postgres().query(&url, end);
    let is_in_order = |ids: &[TimerId]| ids.is_sorted_by(|left, right| left > right);

    let completed = listed(&store, Status::Completed, 2).await;
    assert!(completed.len() == 6 && is_in_order(&completed), "{completed:?}");
    let pending = listed(&store, Status::Pending, 200).await;
    assert!(pending.len() == 2_994 && is_in_order(&pending), "{}", pending.len());
    assert_eq!(listed(&store, Status::Failed, 10).await, []);
}

/// A claim that is left behind a crowd of timers that no node has claimed is found, though no call looks at all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_left_is_found_behind_a_crowd() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let shard_leases = acquire_all(&store).await;
    let new = timer("http://a.example/").due_at(NOW.saturating_add(Span::from_secs(1))).build();
    let id = new.definition.id;
    assert!(matches!(store.create(vec![new]).await.unwrap()[..], [Created::Created(_)]));
    let due = everything_due(&store).await;
    let brief = Claim { lease: Span::from_micros(1), ..claim(7, &shard_leases) };
    assert_eq!(store.claim(&brief, &due).await.unwrap().len(), 1);
    let Shard(shard) = id.shard(store.shards());
    let crowd = format!(
        "INSERT INTO due (shard, id, at, attempt, destination)
         SELECT {shard}, gen_random_uuid(), {}, 0, 1 FROM generate_series(1, 20000)",
        NOW.as_micros()
    );
    throwaway::postgres().query(&url, &crowd);
    let mut calls = 0;
    let left = loop {
        calls += 1;
        let left = store.expired_claims(&shard_leases, 10).await.unwrap();
        if !left.is_empty() {
            break left;
        }
        assert!(calls < 10, "it is never found");
    };
    assert_eq!(left.iter().map(|claimed| claimed.entry.id).collect::<Vec<_>>(), [id]);
    assert_eq!(calls, 2, "one call looks at 16,384 rows of a shard");
    // From the beginning again.
    assert_eq!(store.expired_claims(&shard_leases, 10).await.unwrap(), []);
    assert_eq!(store.settle(&[left[0].settle(Next::Completed { at: NOW })]).await.unwrap(), [true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_space_of_a_crowd_that_was_fired_is_given_back_while_nothing_fires() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    fill(&url, "large", 200_000);
    let bytes = || throwaway::postgres().query(&url, "SELECT pg_relation_size('due')").parse::<u64>().unwrap();
    let full = bytes();
    assert!(full > 32 * 1024 * 1024, "{full}");

    assert_eq!(store.purge(NOW, 10).await.unwrap(), 0);
    assert_eq!(bytes(), full, "they are pending");

    let fired = "WITH gone AS (DELETE FROM due RETURNING id)
                 INSERT INTO outcome (id, status, attempt, executed_at, finished_at)
                 SELECT id, 'completed', 1, 0, timer_now() FROM gone LIMIT 1";
    throwaway::postgres().query(&url, fired);
    throwaway::postgres().query(&url, "ANALYZE due");
    assert_eq!(store.purge(NOW, 10).await.unwrap(), 0);
    assert_eq!(bytes(), full, "one has just ended");

    throwaway::postgres().query(&url, "UPDATE outcome SET finished_at = finished_at - 11000000");
    assert_eq!(store.purge(NOW, 10).await.unwrap(), 0);
    assert_eq!(bytes(), 0);
}
