use std::{
    fs,
    path::{Path, PathBuf},
};

use super::super::timer;
use super::{COPIED, Database, FORGET_THE_COPIED, Finished, Pending};

const FILE: &str = "timers.db";

pub struct Sqlite {
    directory: PathBuf,
    url: String,
}

impl Sqlite {
    pub fn in_directory(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), url: format!("sqlite://{}", directory.join(FILE).display()) }
    }
}

impl Sqlite {
    fn run(&self, command: &str, file: &Path) {
        let output = timer(&self.directory).arg(command).arg(file).env("DATABASE_URL", &self.url).output();
        let output = output.expect("the binary runs");
        assert!(output.status.success(), "{output:?}");
    }
}

impl Database for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn url(&self) -> &str {
        &self.url
    }

    fn file(&self) -> Option<PathBuf> {
        Some(self.directory.join(FILE))
    }

    fn execute(&self, statements: &str) {
        let connection = rusqlite::Connection::open(self.directory.join(FILE)).expect("the database of the service");
        connection.execute_batch(statements).expect("statements that SQLite understands");
    }

    fn back_up(&self, file: &Path) {
        self.run("backup", file);
    }

    fn restored(&self, file: &Path) -> Box<dyn Database> {
        let directory = file.with_extension("restored");
        fs::create_dir(&directory).expect("a directory");
        let restored = Self::in_directory(&directory);
        restored.run("restore", file);
        Box::new(restored)
    }

    /// The database, its log and its index.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let files = self.directory.read_dir().expect("the directory").flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned()).filter(|name| name.starts_with(FILE));
        names.map(|name| (name.clone(), fs::read(self.directory.join(name)).expect("a file"))).collect()
    }

    fn copy_pending(&self, copies: &Pending) -> String {
        let Pending { count, created_at, due_at } = copies;
        let last = count - 1;
        format!(
            "PRAGMA synchronous = OFF;
             BEGIN;
             CREATE TEMP TABLE copy AS
               WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < {last})
               SELECT unhex(printf('%012x', {created_at} / 1000 + n / 100)) || unhex('7000') || randomblob(8) AS id, {due_at} AS at
               FROM n;
             INSERT INTO definition (id, asked, execute_at, execute_minute, due_minute, created_at, updated_at, {COPIED})
               SELECT CAST(copy.id AS BLOB), copy.at, copy.at, copy.at / 60000000, copy.at / 60000000, created_at, updated_at, {COPIED}
               FROM copy, (SELECT created_at, updated_at, {COPIED} FROM definition LIMIT 1) ORDER BY copy.id;
             INSERT INTO due (shard, minute, id, at, attempt, destination, created_at)
               SELECT 0, copy.at / 60000000, CAST(copy.id AS BLOB), copy.at, 0, destination, created_at
               FROM copy, (SELECT destination, created_at FROM due LIMIT 1) ORDER BY 2, 3;
             UPDATE tally SET timers = timers + {count} WHERE namespace = 'default' AND status = 'pending';
             COMMIT;
             PRAGMA wal_checkpoint(TRUNCATE);"
        )
    }

    fn copy_finished(&self, copies: &Finished) -> String {
        let Finished { count, first_at, status } = copies;
        let last = count - 1;
        format!(
            "PRAGMA synchronous = OFF;
             BEGIN;
             CREATE TEMP TABLE copy AS
               WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < {last})
               SELECT CAST(unhex(printf('%012x', {first_at} / 1000 + n / 100)) || unhex('7000') || randomblob(8) AS BLOB) AS id,
                      {first_at} + n AS at
               FROM n;
             INSERT INTO definition (id, asked, execute_at, execute_minute, due_minute, created_at, updated_at, {COPIED})
               SELECT copy.id, at, at, at / 60000000, at / 60000000, at, at, {COPIED}
               FROM copy, (SELECT {COPIED} FROM definition LIMIT 1) ORDER BY copy.id;
             INSERT INTO outcome (minute, id, execute_at, status, attempt, executed_at, finished_at, created_at)
               SELECT at / 60000000, id, at, '{status}', 1, at, at, at FROM copy ORDER BY 1, 2;
             INSERT INTO tally VALUES ('default', '{status}', {count}) ON CONFLICT DO UPDATE SET timers = timers + {count};
             DROP TABLE copy;
             COMMIT;
             PRAGMA wal_checkpoint(TRUNCATE);"
        )
    }

    fn forget_the_copied(&self) -> String {
        let counted = "UPDATE tally SET timers = timers - 1 WHERE namespace = 'default' AND status = 'completed';";
        format!("{FORGET_THE_COPIED} {counted}")
    }

    fn complete_what_is_due(&self, id: &str, at: i64) -> String {
        let id = blob(id);
        format!(
            "INSERT INTO outcome (minute, id, execute_at, status, attempt, finished_at, created_at)
             SELECT execute_minute, id, execute_at, 'completed', 1, {at}, created_at FROM definition WHERE id = {id}"
        )
    }

    fn damage(&self, id: &str) -> String {
        let id = blob(id);
        format!(
            "CREATE TRIGGER refuse BEFORE DELETE ON due WHEN old.id = {id}
             BEGIN SELECT RAISE(ABORT, 'this row is damaged'); END"
        )
    }
}

/// An id as SQLite writes bytes.
fn blob(id: &str) -> String {
    format!("x'{}'", id.replace('-', ""))
}
