//! Databases that an earlier version set up.

use std::time::Duration;

use domain::{Attempt, Namespace, Next, Shard, Status, Timer, TimerId};
use sqlx::{Connection, Executor, PgConnection};
use store::{
    Changed, ClaimToken, Created, DueEntry, DueStore, Epoch, Filter, HealthStore, KeyStore, ListQuery, NodeId, Settlement,
    ShardLease, TimerStore,
};
use store_conformance::{NOW, ahead, millis, secs, timer};
use tokio::time::timeout;

use crate::{acquire_all, claim, everything_due, migrations, open};

/// Longer than a migration of a few timers takes.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A database of the first version, with a timer in each status.
fn of_version_1() -> String {
    let url = throwaway::postgres().create_database();
    throwaway::postgres().query(&url, include_str!("../../migrations/0001_timers.sql"));
    throwaway::postgres().query(&url, include_str!("version_1.sql"));
    url
}

/// The same timers as the second version left them: with an attempt, a key, and an owner whose lease may still run.
fn of_version_2(lease_until: &str) -> String {
    let url = of_version_1();
    throwaway::postgres().query(&url, include_str!("../../migrations/0002_attempts_and_keys.sql"));
    throwaway::postgres().query(&url, include_str!("version_2.sql"));
    throwaway::postgres().query(&url, &format!("UPDATE shard SET lease_until = {lease_until} WHERE owner IS NOT NULL"));
    url
}

/// The owner of every shard in those databases.
const FORMER: NodeId = NodeId(7);

fn numbered(number: u64) -> TimerId {
    timer("http://a.example/").numbered(number).id()
}

#[tokio::test]
async fn a_database_of_version_1_is_carried_over_by_however_many_start_at_once() {
    let url = of_version_1();
    let mut opened = futures_util::future::join_all((0..8).map(|_| open(&url))).await;
    let applied = throwaway::postgres().query(&url, "SELECT version FROM timer_migration ORDER BY version");
    assert_eq!(applied, migrations().join("\n"));
    let store = opened.remove(0);
    let expected = [
        (1, Status::Pending, 0),
        (2, Status::Pending, 1),
        (3, Status::Executing, 1),
        (4, Status::Completed, 1),
        (5, Status::Failed, 3),
        (6, Status::Canceled, 0),
    ];
    for (number, status, attempt) in expected {
        let timer = store.get(numbered(number)).await.unwrap().unwrap();
        assert_eq!((timer.status, timer.attempt, timer.revision), (status, attempt, 1), "{number}");
        assert_eq!(store.attempts(numbered(number)).await.unwrap(), [], "{number}");
    }
    assert_eq!(store.keys().await.unwrap(), []);
}

#[tokio::test]
async fn timers_of_version_1_live_on() {
    let store = open(&of_version_1()).await;

    // Claimed by the version before, settled by this one.
    let attempt = Attempt {
        number: 1,
        started_at: NOW,
        took: millis(5),
        outcome: "timeout".to_owned(),
        status: None,
        detail: None,
        node: None,
        answer: None,
    };
    let settlement = Settlement {
        entry: DueEntry { at: NOW, id: numbered(3), destination: timer("http://a.example/").build().definition.destination() },
        shard_lease: ShardLease { shard: Shard(3), epoch: Epoch(1) },
        token: ClaimToken(77),
        next: Next::Failed { at: NOW, error: "timeout".to_owned() },
        attempt: Some(attempt.clone()),
    };
    assert_eq!(store.settle(&[settlement]).await.unwrap(), [true]);
    assert_eq!(store.attempts(numbered(3)).await.unwrap(), [attempt]);

    let reopened = store.reopen(numbered(5), None, ahead(secs(1))).await.unwrap();
    assert!(matches!(&reopened, Changed::Done(timer) if timer.revision == 2 && timer.status == Status::Pending), "{reopened:?}");
    let all: Vec<_> = (1..=6).map(numbered).collect();
    assert_eq!(store.cancel_all(&all[1..], NOW).await.unwrap(), [true, false, false, true, false]);

    let filter = Filter {
        status: vec![Status::Pending],
        namespaces: vec![Namespace::parse("tenant").unwrap()],
        key_prefix: Some("order-".to_owned()),
        ..Filter::default()
    };
    let keyed = store.list(&ListQuery { filter, ..ListQuery::default() }).await.unwrap().timers;
    assert_eq!(keyed.len(), 1);
    let shard_leases = acquire_all(&store).await;
    let mut due: Vec<_> = everything_due(&store).await;
    due.sort_unstable();
    assert_eq!(due.iter().map(|entry| entry.id).collect::<Vec<_>>(), [numbered(1), keyed[0].id]);
    assert_eq!(store.claim(&claim(7, &shard_leases), &due).await.unwrap().len(), 2);
    assert_eq!(store.purge(ahead(secs(60)), 10).await.unwrap(), 5);
    assert_eq!(store.attempts(numbered(3)).await.unwrap(), []);
}

#[tokio::test]
async fn a_create_that_is_repeated_after_the_upgrade_is_the_same_timer() {
    let store = open(&of_version_1()).await;
    let order = timer("http://a.example/hook").namespace("tenant").key("order-7").payload(r#"{"n": 1.0}"#).metadata(r#"{"a":1}"#);
    let repeated = store.create(vec![order.due_at(NOW).build()]).await.unwrap();
    assert!(matches!(repeated.as_slice(), [Created::Existing(_)]), "{repeated:?}");
}

#[tokio::test]
async fn what_version_2_knew_is_carried_over() {
    let url = of_version_2("0");
    let mut opened = futures_util::future::join_all((0..8).map(|_| open(&url))).await;
    let store = opened.remove(0);
    let attempts = store.attempts(numbered(2)).await.unwrap();
    assert_eq!(
        attempts.iter().map(|attempt| (attempt.number, attempt.outcome.as_str())).collect::<Vec<_>>(),
        [(1, "status_5xx")]
    );
    assert_eq!(store.keys().await.unwrap().iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["ops"]);
    let columns = "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute
                   WHERE attrelid = 'shard'::regclass AND attnum > 0 AND NOT attisdropped";
    assert_eq!(throwaway::postgres().query(&url, columns), "shard epoch owner");

    // Its owner is dead: shards and claims go to the next owner.
    let before = store.cluster().await.unwrap();
    assert!(before.shards.iter().all(|state| state.epoch == Epoch(1) && state.owner == Some(FORMER)), "{before:?}");
    let shard_leases = acquire_all(&store).await;
    assert_eq!(shard_leases.len(), 64);
    assert!(shard_leases.iter().all(|shard_lease| shard_lease.epoch == Epoch(2)), "{shard_leases:?}");
    let left = store.expired_claims(&shard_leases, 10).await.unwrap();
    assert_eq!(left.iter().map(|claimed| claimed.entry.id).collect::<Vec<_>>(), [numbered(3)]);
}

#[tokio::test]
async fn an_owner_of_version_2_is_respected_to_the_end_of_its_lease() {
    let in_an_hour = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 3600000000";
    let url = of_version_2(in_an_hour);
    throwaway::postgres().query(&url, &format!("UPDATE due SET lease_until = {in_an_hour} WHERE claim IS NOT NULL"));
    let store = open(&url).await;
    assert_eq!(acquire_all(&store).await, []);
    let cluster = store.cluster().await.unwrap();
    assert_eq!(
        cluster.members.iter().map(|(member, _)| (member.node, member.takes_shards)).collect::<Vec<_>>(),
        [(NodeId(1), true), (FORMER, false)]
    );

    // It gave a shard back; what it had claimed in it is still its own, until it is dead.
    throwaway::postgres().query(&url, "UPDATE shard SET owner = NULL WHERE shard = 3");
    let shard_leases = acquire_all(&store).await;
    assert_eq!(shard_leases, [ShardLease { shard: Shard(3), epoch: Epoch(2) }]);
    assert_eq!(store.expired_claims(&shard_leases, 10).await.unwrap(), []);
    throwaway::postgres().query(&url, "UPDATE node SET lease_until = 0 WHERE takes_shards IS FALSE");
    assert_eq!(store.expired_claims(&shard_leases, 10).await.unwrap().len(), 1);
    assert_eq!(acquire_all(&store).await.len(), 64);
}

/// What the third version left: the same timers, under the minutes in which they are due.
fn of_version_3() -> String {
    let url = of_version_2("0");
    let statements = concat!("BEGIN; ", include_str!("../../migrations/0003_nodes.sql"), "; COMMIT");
    throwaway::postgres().query(&url, statements);
    throwaway::postgres().query(&url, "INSERT INTO timer_migration (version) VALUES (3)");
    url
}

#[tokio::test]
async fn what_version_3_kept_by_the_minute_is_found_by_its_time() {
    let url = of_version_3();
    let shown = "SELECT string_agg(concat_ws(' ', right(id, 2), status, attempt, extract(epoch FROM next_attempt_at)::bigint,
                     extract(epoch FROM executed_at)::bigint, last_error), '; ' ORDER BY id) FROM timers";
    let before = throwaway::postgres().query(&url, shown);
    let store = open(&url).await;
    assert_eq!(throwaway::postgres().query(&url, shown), before);
    assert!(before.contains("02 pending 1 1749988860 HTTP 503; 03 executing 1 1749988800; "), "{before}");

    // The second one waits for its second attempt, a minute after it was due.
    let moved = store.get(numbered(2)).await.unwrap().unwrap();
    assert_eq!((moved.status, moved.execute_at, moved.last_error.as_deref()), (Status::Pending, NOW, Some("HTTP 503")));
    let due = everything_due(&store).await;
    let at = |id| due.iter().find(|entry| entry.id == id).map(|entry| entry.at);
    assert_eq!((due.len(), at(numbered(1)), at(numbered(2))), (3, Some(NOW), Some(ahead(secs(60)))));
    let shard_leases = acquire_all(&store).await;
    let claimed = store.claim(&claim(7, &shard_leases), &due).await.unwrap();
    assert_eq!(claimed.len(), 3);
    let again = claimed.iter().find(|claimed| claimed.entry.id == numbered(2)).unwrap();
    let later = Next::Pending { at: ahead(secs(61)), attempt: 2, error: Some("HTTP 500".to_owned()) };
    assert_eq!(store.settle(&[again.settle(later)]).await.unwrap(), [true]);
    let canceled = store.cancel(numbered(2), None, NOW).await.unwrap();
    assert!(matches!(&canceled, Changed::Done(timer) if timer.attempt == 2), "{canceled:?}");
}

/// What the fourth version left: the same timers, by the time at which they are due.
fn of_version_4() -> String {
    let url = of_version_3();
    let statements = concat!("BEGIN; ", include_str!("../../migrations/0004_by_time.sql"), "; COMMIT");
    throwaway::postgres().query(&url, statements);
    throwaway::postgres().query(&url, "INSERT INTO timer_migration (version) VALUES (4)");
    url
}

/// A database that the program of the fourth version filled.
fn filled_by_version_4() -> String {
    let url = throwaway::postgres().create_database();
    throwaway::postgres().query(&url, include_str!("version_4.sql"));
    url
}

#[tokio::test]
async fn what_the_program_of_version_4_left_is_carried_over_and_goes_on() {
    let url = filled_by_version_4();
    let shown = format!("SELECT {COLUMNS_OF_VERSION_4} FROM timers ORDER BY id");
    let before = throwaway::postgres().query(&url, &shown);
    assert_eq!(before.lines().count(), 11, "{before}");
    let mut opened = futures_util::future::join_all((0..8).map(|_| open(&url))).await;
    let store = opened.remove(0);
    assert_eq!(throwaway::postgres().query(&url, &shown), before);
    assert_eq!(throwaway::postgres().query(&url, "SELECT count(options) FROM timers"), "0");
    store_conformance::version_4::is_carried_over(&store).await;
    store_conformance::version_4::knows_repeated_creates(&store).await;
    store_conformance::version_4::goes_on(&store).await;
}

/// What the view `timers` showed in the fourth version.
const COLUMNS_OF_VERSION_4: &str =
    "id, namespace, key, created_at, updated_at, execute_at, callback_type, callback_config, status, attempt, last_error,
     next_attempt_at, executed_at, metadata, correlation_id, retry_policy, delivery, revision";

/// The ninth timer, as the fourth version registers it.
const CREATE_OF_VERSION_4: &str = "
    INSERT INTO definition (id, asked, execute_at, created_at, updated_at, revision, namespace, callback_type, delivery,
        fingerprint, callback_config)
    SELECT '00000000-0000-7000-8000-000000000009', asked, execute_at, created_at, updated_at, revision, namespace,
        callback_type, delivery, fingerprint, callback_config
    FROM definition WHERE id::text LIKE '%0001';
    INSERT INTO due (shard, id, at, attempt, destination)
    VALUES (9, '00000000-0000-7000-8000-000000000009', 1749988800000000, 0, 1)";

/// It does not say whether what it writes is late.
#[tokio::test]
async fn late_creations_by_a_program_of_version_4_are_recorded() {
    let url = of_version_4();
    let query = |sql: &str| throwaway::postgres().query(&url, sql);
    open(&url).await;
    let late = "SELECT coalesce(string_agg(id::text, ' '), '') FROM journal WHERE kind = 1";
    query(&CREATE_OF_VERSION_4.replace(
        "execute_at, created_at, updated_at, revision, namespace,\n",
        "execute_at, timer_now(), updated_at, revision, namespace,\n",
    ));
    assert_eq!(query("SELECT timer_now() - created_at < 60000000 FROM definition WHERE id::text LIKE '%0009'"), "t");
    assert_eq!(query(late), "", "it was in time");
    query(&CREATE_OF_VERSION_4.replace("000000000009", "000000000010"));
    assert_eq!(query(late), "00000000-0000-7000-8000-000000000010");
}

/// Nor does it write changes to the journal.
#[tokio::test]
async fn changes_by_a_program_of_version_4_are_recorded() {
    let url = of_version_4();
    let query = |sql: &str| throwaway::postgres().query(&url, sql);
    let store = open(&url).await;
    let recorded = || query("SELECT string_agg(seq::text, ' ' ORDER BY n) FROM journal WHERE kind = 2");
    let change = "UPDATE definition SET revision = revision + 1 WHERE id::text LIKE '%0001'";
    let first = store.get(numbered(1)).await.unwrap().unwrap();
    let revision = first.revision;
    query(change);
    assert_eq!(recorded(), format!("{}", revision + 1));
    let second = Timer { revision: revision + 1, ..first };
    assert!(matches!(store.update(&second, NOW).await.unwrap(), Changed::Done(_)));
    assert_eq!(recorded(), format!("{} {}", revision + 1, revision + 2), "by the statement, and not again by the trigger");
    query(change);
    assert_eq!(recorded(), format!("{} {} {}", revision + 1, revision + 2, revision + 3));
}

#[tokio::test]
async fn what_version_4_said_of_timers_is_said_as_before_beside_their_options() {
    let url = of_version_4();
    throwaway::postgres()
        .query(&url, "UPDATE definition SET delivery = 'at_most_once', correlation_id = 'c-5' WHERE id::text LIKE '%5'");
    let shown = format!("SELECT {COLUMNS_OF_VERSION_4} FROM timers ORDER BY id");
    let before = throwaway::postgres().query(&url, &shown);
    assert_eq!(before.lines().count(), 7, "{before}");
    let store = open(&url).await;
    assert_eq!(throwaway::postgres().query(&url, &shown), before);
    assert_eq!(throwaway::postgres().query(&url, "SELECT count(options) FROM timers"), "0");
    assert_eq!(store.get(numbered(5)).await.unwrap().unwrap().definition.delivery, domain::Delivery::AtMostOnce);
    // The version before goes on registering timers: it does not name the new column.
    throwaway::postgres().query(&url, CREATE_OF_VERSION_4);
    assert_eq!(store.get(numbered(9)).await.unwrap().unwrap().status, Status::Pending);
}

/// A backup reads for as long as it takes. Nodes of the version before go on meanwhile, between the tries of the migration.
#[tokio::test]
async fn a_migration_behind_a_long_reader_lets_creates_pass_and_ends_after_it() {
    let url = of_version_4();
    let mut reader = PgConnection::connect(&url).await.unwrap();
    reader.execute("BEGIN; LOCK TABLE definition IN ACCESS SHARE MODE").await.unwrap();
    let opening = tokio::spawn({
        let url = url.clone();
        async move { open(&url).await }
    });
    let mut observer = PgConnection::connect(&url).await.unwrap();
    until_a_migration_waits(&mut observer).await;

    let mut earlier = PgConnection::connect(&url).await.unwrap();
    timeout(TIMEOUT, earlier.execute(CREATE_OF_VERSION_4)).await.expect("a create passes").unwrap();

    until_a_migration_waits(&mut observer).await;
    assert!(!opening.is_finished());
    assert_eq!(throwaway::postgres().query(&url, "SELECT max(version) FROM timer_migration"), "4");
    reader.execute("COMMIT").await.unwrap();
    let store = timeout(TIMEOUT, opening).await.expect("a migration goes through").unwrap();
    assert_eq!(store.get(numbered(9)).await.unwrap().unwrap().status, Status::Pending);
    let latest = throwaway::postgres().query(&url, "SELECT max(version) FROM timer_migration");
    assert_eq!(Some(&latest), migrations().last());
    let indexes = "SELECT count(*) FROM pg_index WHERE indisvalid
                   AND indexrelid IN (to_regclass('outcome_expired'), to_regclass('definition_group'))";
    assert_eq!(throwaway::postgres().query(&url, indexes), "2");
}

async fn until_a_migration_waits(observer: &mut PgConnection) {
    let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'definition'::regclass)";
    while !sqlx::query_scalar::<_, bool>(waiting).fetch_one(&mut *observer).await.unwrap() {
        tokio::task::yield_now().await;
    }
}

/// No session may change a timer by the old rules while it is carried over.
#[tokio::test]
async fn a_migration_waits_for_those_who_change_timers() {
    let url = of_version_1();
    let mut earlier = PgConnection::connect(&url).await.unwrap();
    earlier
        .execute("BEGIN; UPDATE definition SET revision = 2; UPDATE due SET attempt = 1; UPDATE outcome SET attempt = 2")
        .await
        .unwrap();
    let opening = tokio::spawn({
        let url = url.clone();
        async move { open(&url).await }
    });
    until_a_migration_waits(&mut earlier).await;
    earlier.execute("COMMIT").await.unwrap();
    let store = timeout(TIMEOUT, opening).await.expect("a migration goes through").unwrap();
    assert_eq!(store.get(numbered(1)).await.unwrap().unwrap().revision, 2);
}
