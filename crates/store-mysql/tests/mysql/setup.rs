//! Setting a database up, and what people see of it.

use std::time::Duration;

use store::{DueStore, EventStore, HealthStore, KeyStore, MembershipStore, TimerStore};
use store_conformance::{secs, timer};
use store_mysql::{MysqlOptions, MysqlStore, OpenError};
use tokio::time::{Instant, sleep};

fn migrations(url: &str) -> String {
    throwaway::mariadb().query(url, "SELECT GROUP_CONCAT(version ORDER BY version) FROM timer_migration")
}

#[tokio::test]
async fn a_migration_that_was_cut_short_is_completed_by_the_next_start() {
    let url = throwaway::mariadb().create_database();
    super::open(&url).await;
    let all = migrations(&url);
    // As if the process had died in the middle of the migrations, each statement of which is committed by itself.
    throwaway::mariadb()
        .query(&url, "DELETE FROM timer_migration WHERE version > 1; DROP VIEW timers; DROP TABLE paused, digest");

    let store = super::open(&url).await;

    assert_eq!(migrations(&url), all);
    assert_eq!(store.keys().await.unwrap(), []);
    assert_eq!(throwaway::mariadb().query(&url, "SELECT COUNT(*) FROM shard"), "64");
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let url = throwaway::mariadb().create_database();
    super::open(&url).await;
    throwaway::mariadb().query(&url, "INSERT INTO timer_migration (version) VALUES (1000)");
    let refused = MysqlStore::connect(&MysqlOptions(url)).await.unwrap_err();
    assert!(matches!(&refused, OpenError::Unfit(why) if why.to_string().contains("version 1000")), "{refused}");
}

#[tokio::test]
async fn a_server_that_forgets_is_noticed() {
    let server = throwaway::Mysql::start_mariadb();
    let url = server.create_database();
    let durability = async || MysqlStore::connect(&MysqlOptions(url.clone())).await.unwrap().durability().clone();
    assert!(durability().await.is_full());
    server.query(&url, "SET GLOBAL innodb_flush_log_at_trx_commit = 2");
    assert_eq!(durability().await.weak_settings, ["innodb_flush_log_at_trx_commit=2"]);
}

#[tokio::test]
async fn people_read_timers_under_plain_names() {
    let url = throwaway::mariadb().create_database();
    let store = super::open(&url).await;
    let draft = timer("http://a.example/").namespace("shop").key("größe 😀").due_in(secs(1));
    let id = draft.id();
    store.create(vec![draft.build()]).await.unwrap();
    let seen = throwaway::mariadb().query(&url, "SELECT id, namespace, `key`, status, attempt, revision FROM timers");
    assert_eq!(seen, format!("{id}\tshop\tgröße 😀\tpending\t0\t1"));
}

#[tokio::test]
async fn a_user_that_may_not_create_tables_can_run_the_service() {
    let url = throwaway::mariadb().create_database();
    super::open(&url).await;
    let (_, database) = url.rsplit_once('/').unwrap();
    let grants =
        format!("CREATE USER 'plain'@'127.0.0.1'; GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO 'plain'@'127.0.0.1'");
    throwaway::mariadb().query(&url, &grants);

    let store = super::open(&url.replace("timer@", "plain@")).await;

    create_and_claim(&store).await;
}

#[tokio::test]
async fn what_a_server_has_for_other_sessions_does_not_matter() {
    let server = throwaway::Mysql::start_mariadb();
    let url = server.create_database();
    server.query(
        &url,
        "SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT';
         SET GLOBAL time_zone = '+05:00';
         SET GLOBAL tx_isolation = 'SERIALIZABLE';
         SET GLOBAL autocommit = 0",
    );
    let store = super::open(&url).await;

    create_and_claim(&store).await;

    let draft = timer("http://a.example/").key("it's \\ \"here\"").due_in(secs(3_600));
    let id = draft.id();
    store.create(vec![draft.build()]).await.unwrap();
    assert_eq!(store.get(id).await.unwrap().unwrap().definition.key.unwrap().as_str(), "it's \\ \"here\"");
}

/// Also in the middle of a transaction, whose locks it would keep for hours otherwise.
#[tokio::test]
async fn mysql_ends_a_session_that_is_idle_and_the_next_call_has_another() {
    const SESSIONS: &str = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()";
    let Some(server) = throwaway::mysql() else {
        println!("left out: no MySQL is installed for this checkout");
        return;
    };
    let url = server.create_database();
    let store = super::open(&url).await;
    store.probe().await.unwrap();
    assert_ne!(server.query(&url, SESSIONS), "0");
    let give_up = Instant::now() + Duration::from_secs(30);
    while server.query(&url, SESSIONS) != "0" {
        assert!(Instant::now() < give_up, "they stay");
        sleep(Duration::from_millis(200)).await;
    }
    store.probe().await.unwrap();
}

/// What a node does with a timer.
async fn create_and_claim(store: &MysqlStore) {
    let shard_leases = super::acquire_all(store).await;
    let new = timer("http://a.example/").build();
    let id = new.definition.id;
    store.create(vec![new]).await.unwrap();
    let due = super::everything_due(store).await;
    store.nudge(&due).await.unwrap();
    assert_eq!(store.claim(&super::claim(1, &shard_leases), &due).await.unwrap().len(), 1);
    store.probe().await.unwrap();
    store.watermark().await.unwrap();
    assert_eq!(store.get(id).await.unwrap().unwrap().status, domain::Status::Executing);
}
