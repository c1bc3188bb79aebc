use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A fresh, empty store, and the directory in which its service runs.
pub struct Backend {
    url: String,
    home: TempDir,
}

impl Backend {
    pub fn sqlite() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        Self { url: format!("sqlite://{}", home.path().join("timers.db").display()), home }
    }

    /// A file in a directory of the test. Its service runs elsewhere.
    pub fn sqlite_in(directory: &Path) -> Self {
        let url = format!("sqlite://{}", directory.join("timers.db").display());
        Self { url, home: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn postgres() -> Self {
        Self::postgres_at(throwaway::postgres().create_database())
    }

    /// A database of a server that the test has for itself.
    pub fn postgres_at(url: String) -> Self {
        Self { url, home: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn is_sqlite(&self) -> bool {
        self.sqlite_file().is_some()
    }

    /// For printed figures.
    pub fn name(&self) -> &'static str {
        if self.is_sqlite() { "SQLite" } else { "PostgreSQL" }
    }

    /// Where the database is, if it is a file.
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        self.url.strip_prefix("sqlite://").map(PathBuf::from)
    }

    /// Runs statements straight in the database, past the service: for what would take a service days.
    pub fn execute(&self, sqlite: &str, postgres: &str) {
        match self.sqlite_file() {
            Some(file) => {
                let connection = rusqlite::Connection::open(file).expect("the database of the service");
                connection.execute_batch(sqlite).expect("statements that SQLite understands");
            }
            None => drop(throwaway::postgres().query(&self.url, postgres)),
        }
    }
}
