//! How the server carries the statements out: through keys, whatever the size of the tables.

use domain::Span;
use store::{Created, Store};
use store_conformance::{NOW, timer};
use store_postgres::statements;

use crate::{acquire_all, claim, everything_due, open};

/// The plan that is kept for a statement, made without knowing its arguments.
fn plan(url: &str, statement: &str) -> String {
    let parameters = (1..).take_while(|number| statement.contains(&format!("${number}"))).count();
    let arguments = if parameters == 0 { String::new() } else { format!("({})", vec!["NULL"; parameters].join(", ")) };
    let settings: String = statements::SESSION.iter().map(|(name, value)| format!("SET {name} = {value}; ")).collect();
    throwaway::postgres().query(url, &format!("{settings} PREPARE s AS {statement}; EXPLAIN EXECUTE s{arguments}"))
}

fn assert_keyed(url: &str, when: &str) {
    for (name, statement) in statements::SCHEDULER.into_iter().chain(statements::CALLERS) {
        let plan = plan(url, statement);
        for scan in ["Seq Scan", "Bitmap", "Hash Join", "Merge Join", "->  Sort"] {
            assert!(!plan.contains(scan), "{name} {when}: {scan} in\n{plan}");
        }
        // A walk over a whole index is as bad as one over the table, except over the one with a row for each shard.
        let pairs = plan.lines().zip(plan.lines().skip(1));
        for (line, next) in
            pairs.filter(|(line, _)| line.contains("Index") && line.contains("Scan") && !line.contains(" on shard "))
        {
            assert!(next.contains("Index Cond"), "{name} {when}: {line} without a condition in\n{plan}");
        }
    }
    let due = plan(url, statements::SCHEDULER[0].1);
    assert!(due.contains("Incremental Sort") && due.contains("Presorted Key: d.minute"), "{when}: {due}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_keyed_statement_uses_an_index_on_empty_and_on_large_tables() {
    let url = throwaway::postgres().create_database();
    open(&url).await;
    assert_keyed(&url, "on empty tables");
    let fill = "
        INSERT INTO definition (id, namespace, asked, execute_at, due_minute, callback_type, callback_config, delivery,
            fingerprint, revision, created_at, updated_at)
        SELECT gen_random_uuid(), 'default', n, n::bigint * 100000, n / 600, 'http', '{}', 'at_least_once', '\\x00', 1, n, n
        FROM generate_series(1, 60000) AS n;
        INSERT INTO due (shard, minute, id, at, attempt, destination)
        SELECT n % 64, n / 600, gen_random_uuid(), n::bigint * 100000, 0, 1 FROM generate_series(1, 60000) AS n;
        INSERT INTO outcome (id, status, attempt, executed_at, finished_at)
        SELECT gen_random_uuid(), 'completed', 1, n, n FROM generate_series(1, 60000) AS n;
        ANALYZE";
    throwaway::postgres().query(&url, fill);
    assert_keyed(&url, "on large tables");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_by_the_wanted_time_reads_only_its_minutes() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let drafts = (0..3_000).map(|n| timer("http://a.example/").due_in(Span::from_secs(n)).created_at(NOW).build());
    store.create(drafts.collect()).await.unwrap();
    throwaway::postgres().query(&url, "ANALYZE");
    let listing = "EXPLAIN SELECT f.id FROM definition f
                   ORDER BY (f.execute_at / 60000000) DESC, f.execute_at DESC, f.id DESC LIMIT 11";
    let plan = throwaway::postgres().query(&url, listing);
    assert!(plan.contains("Incremental Sort") && plan.contains("definition_execute"), "{plan}");
}

/// A claim that left its page would have to be entered into the index again, and twice the index would have to be cleaned up.
#[tokio::test(flavor = "multi_thread")]
async fn claims_stay_on_their_page() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let tenures = acquire_all(&store).await;
    let drafts = (0..3_000).map(|n| timer("http://a.example/").numbered(n).build()).collect();
    let created = store.create(drafts).await.unwrap();
    assert!(created.iter().all(|created| matches!(created, Created::Created(_))));
    let due = everything_due(&store).await;
    for (token, batch) in (1..).zip(due.chunks(1_000)) {
        assert_eq!(store.claim(&claim(token, &tenures), batch).await.unwrap().len(), batch.len());
    }
    drop(store);
    // Sessions report what they did when they end, at the latest.
    let updates = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'due'";
    let counted = loop {
        let counted = throwaway::postgres().query(&url, updates);
        if counted.starts_with("3000|") {
            break counted;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(counted, "3000|3000");
}
