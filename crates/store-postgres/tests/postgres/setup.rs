//! Reaching a database, setting it up, and looking into it with other eyes.

use std::error::Error;

use domain::{Next, Span, Timestamp};
use store::{Created, DueStore, EventStore, HealthStore, Sharded, TimerStore};
use store_conformance::{NOW, secs, timer};
use store_postgres::{OpenError, PostgresOptions, PostgresStore};

use crate::{acquire_all, claim, everything_due, migrations, open};

#[tokio::test]
async fn processes_that_migrate_at_the_same_time_do_no_harm() {
    let url = throwaway::postgres().create_database();
    let opened = futures_util::future::join_all((0..8).map(|_| open(&url))).await;
    assert!(opened.iter().all(|store| store.shards() == 64));
    let again = open(&url).await;
    assert_eq!(again.shards(), 64);
    let applied = throwaway::postgres().query(&url, "SELECT version FROM timer_migration ORDER BY version");
    assert_eq!(applied, migrations().join("\n"));
    assert_eq!(throwaway::postgres().query(&url, "SELECT count(*), min(shard), max(shard) FROM shard"), "64|0|63");
}

#[tokio::test]
async fn the_number_of_shards_is_the_databases() {
    let url = throwaway::postgres().create_database();
    open(&url).await;
    throwaway::postgres().query(&url, "UPDATE timer_setup SET shards = 8");
    let store = PostgresStore::connect(&PostgresOptions::Url(url)).await.unwrap();
    assert_eq!(store.shards(), 8);
}

#[tokio::test]
async fn tables_of_a_newer_program_are_refused() {
    let url = throwaway::postgres().create_database();
    open(&url).await;
    throwaway::postgres().query(&url, "INSERT INTO timer_migration (version) VALUES (1000)");
    let refused = PostgresStore::connect(&PostgresOptions::Url(url)).await;
    assert!(matches!(refused, Err(OpenError::Unfit(_))), "{refused:?}");
}

#[tokio::test]
async fn the_tables_stand_in_the_default_schema_of_the_user() {
    let url = throwaway::postgres().create_database();
    throwaway::postgres().query(&url, "CREATE SCHEMA apart");
    let store = open(&format!("{url}?options[search_path]=apart")).await;
    store.create(vec![timer("http://a.example/").build()]).await.unwrap();
    assert_eq!(throwaway::postgres().query(&url, "SELECT count(*) FROM apart.timers"), "1");
}

#[tokio::test]
async fn a_role_that_may_not_make_temporary_tables_can_show_that_it_writes() {
    let url = throwaway::postgres().create_database();
    open(&url).await;
    let database = url.rsplit_once('/').unwrap().1;
    let role = format!("plain_{database}");
    let query = |sql: &str| throwaway::postgres().query(&url, sql);
    query(&format!(r#"REVOKE TEMPORARY ON DATABASE "{database}" FROM PUBLIC"#));
    query(&format!(r#"CREATE ROLE "{role}""#));
    query(&format!(r#"GRANT ALL ON ALL TABLES IN SCHEMA public TO "{role}""#));
    let store = PostgresStore::connect(&PostgresOptions::Url(format!("{url}?options[role]={role}"))).await.unwrap();

    store.probe().await.unwrap();

    assert_eq!(query("SELECT count(*) FROM attempt"), "0");
    query(&format!(r#"REVOKE INSERT ON attempt FROM "{role}""#));
    assert!(store.probe().await.is_err(), "it has to write");
    query(&format!(r#"DROP OWNED BY "{role}"; DROP ROLE "{role}""#));
}

/// The triggers write with the rights and the tables of the role that has migrated, whatever role and search_path a session has.
#[tokio::test]
async fn a_role_that_may_only_use_the_tables_records_events() {
    let url = throwaway::postgres().create_database();
    let query = |sql: &str| throwaway::postgres().query(&url, sql);
    query("CREATE SCHEMA apart");
    open(&format!("{url}?options[search_path]=apart")).await;
    let role = format!("plain_{}", url.rsplit_once('/').unwrap().1);
    query(&format!(r#"CREATE ROLE "{role}"; GRANT USAGE ON SCHEMA apart TO "{role}""#));
    query(&format!(r#"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA apart TO "{role}""#));
    query(&format!(r#"REVOKE INSERT ON apart.journal FROM "{role}""#));
    let of_role = format!("{url}?options[search_path]=apart&options[role]={role}");
    let store = PostgresStore::connect(&PostgresOptions::Url(of_role)).await.unwrap();
    store.migrate().await.expect("there is nothing left to do");

    let id = store.create(vec![timer("http://a.example/").build()]).await.unwrap()[0].timer().id();
    assert_eq!(query("SELECT count(*) FROM apart.journal WHERE kind = 1"), "1");
    store.cancel(id, None, NOW).await.unwrap();
    assert_eq!(query("SELECT count(*) FROM apart.journal WHERE kind = 4"), "1");
    // An operator whose session has another search_path.
    query("UPDATE apart.definition SET revision = revision + 1");
    assert_eq!(query("SELECT count(*) FROM apart.journal WHERE kind = 2"), "1");
    assert_eq!(store.forget_events(Timestamp::MAX, 10).await.unwrap(), 3);
    query(&format!(r#"DROP OWNED BY "{role}"; DROP ROLE "{role}""#));
}

/// An entry of a later program, or of a damaged disk, costs itself and nothing else.
#[tokio::test]
async fn an_event_that_cannot_be_read_is_left_out() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    throwaway::postgres().query(
        &url,
        "INSERT INTO journal (at, kind, id, seq, status) SELECT at, kind, gen_random_uuid(), 7, 'odd'
         FROM (VALUES (1, 2), (2, 99), (3, 5), (4, 2)) AS odd (at, kind)",
    );
    let page = store.events(Timestamp::from_micros(0), Timestamp::from_micros(10), 100).await.unwrap();
    let positions: Vec<_> = page.events.iter().map(|event| event.position.as_micros()).collect();
    assert_eq!((positions, page.until), (vec![1, 4], Timestamp::from_micros(10)));
}

/// A server that wants a password, with one that has every character that is special somewhere.
#[tokio::test]
async fn a_password_may_have_any_characters() {
    let postgres = throwaway::Postgres::start();
    let admin = postgres.url("postgres");
    let password = r#"p@ss:/?#[]% w'"\é"#;
    postgres.query(&admin, &format!("CREATE ROLE special LOGIN SUPERUSER PASSWORD $${password}$$"));
    let hba = postgres.home().join("data/pg_hba.conf");
    let rules = std::fs::read_to_string(&hba).unwrap();
    std::fs::write(&hba, format!("host all special 127.0.0.1/32 scram-sha-256\n{rules}")).unwrap();
    postgres.query(&admin, "SELECT pg_reload_conf()");
    let port: u16 = admin.rsplit_once(':').unwrap().1.split('/').next().unwrap().parse().unwrap();
    let parts = |password: &str| PostgresOptions::Parts {
        host: "127.0.0.1".to_owned(),
        port,
        user: "special".to_owned(),
        password: Some(password.to_owned()),
        database: "postgres".to_owned(),
    };

    // The new rules hold once the server has read them.
    let complaint = loop {
        match PostgresStore::connect(&parts("s3cret-but-wrong")).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(refused) => break format!("{refused} {refused:?}"),
        }
    };
    assert!(complaint.contains("password authentication failed"), "{complaint}");
    assert!(!complaint.contains("s3cret"), "{complaint}");

    let store = PostgresStore::connect(&parts(password)).await.unwrap();
    store.migrate().await.unwrap();
    store.ping().await.unwrap();
    let encoded = "p%40ss%3A%2F%3F%23%5B%5D%25%20w%27%22%5C%C3%A9";
    let url = format!("postgres://special:{encoded}@127.0.0.1:{port}/postgres");
    PostgresStore::connect(&PostgresOptions::Url(url)).await.unwrap().ping().await.unwrap();
}

#[tokio::test]
async fn an_address_where_no_server_answers_is_an_error_not_a_wait() {
    let url = format!("postgres://u:s3cret@127.0.0.1:{}/d", throwaway::free_port());
    let refused = PostgresStore::connect(&PostgresOptions::Url(url)).await;
    let Err(OpenError::Unreachable(cause)) = refused else { panic!("{refused:?}") };
    assert!(!cause.as_str().contains("s3cret"), "{cause}");
    assert!(cause.source().is_some_and(|source| !format!("{source:?}").contains("s3cret")), "{cause:?}");
}

#[tokio::test]
async fn a_server_that_forgets_is_named() {
    let url = throwaway::postgres().create_database();
    assert!(open(&url).await.durability().is_full());
    let forgetful = format!("{url}?options[synchronous_commit]=off");
    assert_eq!(open(&forgetful).await.durability().weak_settings, ["synchronous_commit=off"]);
}

#[tokio::test]
async fn a_database_in_another_encoding_is_refused() {
    let url = throwaway::postgres().create_database();
    let latin = "CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C' LOCALE_PROVIDER libc";
    throwaway::postgres().query(&url, latin);
    let url = throwaway::postgres().url("latin");
    let refused = PostgresStore::connect(&PostgresOptions::Url(url)).await;
    assert!(matches!(&refused, Err(OpenError::Unfit(cause)) if cause.as_str().contains("LATIN1")), "{refused:?}");
}

/// What people see when they look into the database: one timer of each status, under plain names.
#[tokio::test]
async fn the_view_shows_every_timer_in_plain_words() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let drafts = (0..5_u32).map(|number| timer("http://a.example/").numbered(number.into()).due_in(secs(number)).build());
    let timers: Vec<_> = store.create(drafts.collect()).await.unwrap().iter().map(Created::timer).cloned().collect();
    let shard_leases = acquire_all(&store).await;
    let due = everything_due(&store).await;
    let of = |number: usize| due.iter().find(|entry| entry.id == timers[number].id()).copied().unwrap();
    let claimed = store.claim(&claim(7, &shard_leases), &[of(1), of(2), of(3)]).await.unwrap();
    for claimed in claimed {
        let at = NOW.saturating_add(Span::from_micros(1));
        let next = match claimed.entry.id {
            id if id == timers[2].id() => Next::Completed { at },
            id if id == timers[3].id() => Next::Failed { at, error: "HTTP 500\0".to_owned() },
            _ => continue,
        };
        assert_eq!(store.settle(&[claimed.settle(next)]).await.unwrap(), [true]);
    }
    store.cancel(timers[4].id(), None, NOW).await.unwrap();

    let select = "SELECT id, status, attempt, execute_at AT TIME ZONE 'UTC', executed_at AT TIME ZONE 'UTC', last_error
                  FROM timers ORDER BY id";
    let seen = throwaway::postgres().query(&url, select);
    let expected = [
        "00000000-0000-7000-8000-000000000000|pending|0|2025-06-15 12:00:00||",
        "00000000-0000-7000-8000-000000000001|executing|1|2025-06-15 12:00:01||",
        "00000000-0000-7000-8000-000000000002|completed|1|2025-06-15 12:00:02|2025-06-15 12:00:00.000001|",
        "00000000-0000-7000-8000-000000000003|failed|1|2025-06-15 12:00:03|2025-06-15 12:00:00.000001|HTTP 500\u{fffd}",
        "00000000-0000-7000-8000-000000000004|canceled|0|2025-06-15 12:00:04||",
    ];
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_ends_of_time_can_be_stored() {
    let url = throwaway::postgres().create_database();
    let store = open(&url).await;
    let first = timer("http://a.example/").numbered(1).due_at(Timestamp::MIN).build();
    let last = timer("http://a.example/").numbered(2).due_at(Timestamp::MAX).build();
    store.create(vec![first, last]).await.unwrap();
    let mut due: Vec<_> = everything_due(&store).await.into_iter().map(|entry| entry.at).collect();
    due.sort_unstable();
    assert_eq!(due, [Timestamp::MIN, Timestamp::MAX]);
}
