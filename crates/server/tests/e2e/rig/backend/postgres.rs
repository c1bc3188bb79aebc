use std::{path::Path, sync::OnceLock};

use store_postgres::{PostgresOptions, PostgresStore};

use super::{COPIED, Database, FORGET_THE_COPIED, Finished, Pending, two_numbers};

pub struct Postgres {
    url: String,
}

impl Postgres {
    /// A copy of a database that was set up once, which costs less than to set up one for each test. Services that set up an empty one are
    /// tested on servers of their own.
    pub fn with_tables() -> Self {
        static TEMPLATE: OnceLock<String> = OnceLock::new();
        Self::at(throwaway::postgres().copy_database(TEMPLATE.get_or_init(set_up)))
    }

    pub const fn at(url: String) -> Self {
        Self { url }
    }
}

/// A database with all tables, to which nothing is connected.
fn set_up() -> String {
    let url = throwaway::postgres().create_database();
    let migrate = async {
        let store = PostgresStore::connect(&PostgresOptions::Url(url.clone())).await.expect("a session");
        store.migrate().await.expect("all migrations");
    };
    // A runtime of its own ends with all that runs in it, sessions included.
    let run = || tokio::runtime::Runtime::new().expect("a runtime").block_on(migrate);
    std::thread::scope(|scope| scope.spawn(run).join().expect("a database with tables"));
    url
}

impl Database for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn execute(&self, statements: &str) {
        drop(throwaway::postgres().query(&self.url, statements));
    }

    fn back_up(&self, file: &Path) {
        throwaway::postgres().back_up(&self.url, file);
    }

    fn restored(&self, file: &Path) -> Box<dyn Database> {
        Box::new(Self::at(throwaway::postgres().restored(file)))
    }

    fn timers_and_keys(&self) -> (usize, usize) {
        let counts = "SELECT count(*), count(DISTINCT key) FROM definition";
        two_numbers(&throwaway::postgres().query(&self.url, counts), '|')
    }

    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let dump = "SET xmlbinary = hex; SELECT database_to_xml(false, false, '')";
        vec![("the database".to_owned(), throwaway::postgres().query(&self.url, dump).into_bytes())]
    }

    fn copy_pending(&self, copies: &Pending) -> String {
        let Pending { count, created_at, due_at } = copies;
        let last = count - 1;
        format!(
            "CREATE TEMP TABLE copy AS
               SELECT (lpad(to_hex({created_at} / 1000 + n / 100), 12, '0') || '7000' || substr(md5(n::text), 1, 16))::uuid AS id,
                      {due_at} AS at
               FROM generate_series(0::bigint, {last}) AS n;
             INSERT INTO definition (id, asked, execute_at, created_at, updated_at, {COPIED})
               SELECT copy.id, copy.at, copy.at, created_at, updated_at, {COPIED}
               FROM copy, (SELECT created_at, updated_at, {COPIED} FROM definition LIMIT 1) AS one;
             INSERT INTO due (shard, id, at, attempt, destination)
               SELECT (get_byte(uuid_send(copy.id), 14) * 256 + get_byte(uuid_send(copy.id), 15)) % shards,
                      copy.id, copy.at, 0, destination
               FROM copy, timer_setup, (SELECT destination FROM due LIMIT 1) AS one;"
        )
    }

    fn copy_finished(&self, copies: &Finished) -> String {
        let Finished { count, first_at, status } = copies;
        let last = count - 1;
        format!(
            "CREATE TEMP TABLE copy AS
               SELECT (lpad(to_hex({first_at} / 1000 + n / 100), 12, '0') || '7000' || substr(md5('{status}' || n), 1, 16))::uuid AS id,
                      {first_at} + n AS at
               FROM generate_series(0, {last}) AS n;
             INSERT INTO definition (id, asked, execute_at, created_at, updated_at, {COPIED})
               SELECT copy.id, at, at, at, at, {COPIED} FROM copy, (SELECT {COPIED} FROM definition LIMIT 1) AS one;
             INSERT INTO outcome (id, status, attempt, executed_at, finished_at) SELECT id, '{status}', 1, at, at FROM copy;
             DROP TABLE copy;"
        )
    }

    /// Without statistics the first plans would be guesses.
    fn forget_the_copied(&self) -> String {
        format!("{FORGET_THE_COPIED} ANALYZE definition; ANALYZE outcome;")
    }

    fn complete_what_is_due(&self, id: &str, at: i64) -> String {
        format!("INSERT INTO outcome (id, status, attempt, finished_at) VALUES ('{id}', 'completed', 1, {at})")
    }

    fn damage(&self, id: &str) -> String {
        format!(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RAISE EXCEPTION 'this row is damaged' USING ERRCODE = 'data_corrupted';
             END $$;
             CREATE TRIGGER refuse BEFORE DELETE ON due FOR EACH ROW WHEN (old.id = '{id}') EXECUTE FUNCTION refuse()"
        )
    }
}
