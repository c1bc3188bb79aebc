//! Where timers are kept. A store that fails ends the program: nothing here repeats a write whose outcome is unknown.

mod postgres;
mod sqlite;

use std::process;

use crate::{
    Result,
    timer::{Due, Timer},
};

/// The most timers in one transaction of PostgreSQL, and in one piece of work of SQLite, except for longer batches of a client.
pub const BATCH_MAX: usize = 1_024;

#[derive(Debug, Clone)]
pub enum Database {
    Sqlite(sqlite::Writer),
    Postgres(Box<tokio_postgres::Config>),
}

impl Database {
    /// Opens the database at `url`, and reads what is pending in it. What an earlier process claimed is pending again.
    pub async fn open(url: &str) -> Result<(Self, Vec<Due>)> {
        if let Some(path) = url.strip_prefix("sqlite://") {
            let (writer, pending) = sqlite::open(path)?;
            return Ok((Self::Sqlite(writer), pending));
        }
        let (config, pending) = postgres::open(url).await?;
        Ok((Self::Postgres(Box::new(config)), pending))
    }

    /// Opens a session for one task. It belongs to the runtime that it is opened in.
    pub async fn session(&self) -> Result<Session> {
        Ok(match self {
            Self::Sqlite(writer) => Session::Sqlite(writer.clone()),
            Self::Postgres(config) => Session::Postgres(Box::new(postgres::Session::open(config).await?)),
        })
    }
}

#[derive(Debug)]
pub enum Session {
    Sqlite(sqlite::Writer),
    Postgres(Box<postgres::Session>),
}

impl Session {
    /// Returns when the timers are on disk.
    pub async fn create(&self, timers: Vec<Timer>) {
        match self {
            Self::Sqlite(writer) => drop(writer.write(sqlite::Work::Create(timers)).await),
            Self::Postgres(session) => session.create(&timers).await.unwrap_or_else(|error| give_up(&error)),
        }
    }

    /// Returns those that are still pending, when their claims are on disk.
    pub async fn claim(&self, due: Vec<Due>) -> Vec<Timer> {
        match self {
            Self::Sqlite(writer) => writer.write(sqlite::Work::Claim(due)).await,
            Self::Postgres(session) => session.claim(&due).await.unwrap_or_else(|error| give_up(&error)),
        }
    }

    /// Returns when it is on disk that these are done.
    pub async fn complete(&self, due: Vec<Due>) {
        match self {
            Self::Sqlite(writer) => drop(writer.write(sqlite::Work::Complete(due)).await),
            Self::Postgres(session) => session.complete(&due).await.unwrap_or_else(|error| give_up(&error)),
        }
    }

    /// Forgets all timers.
    pub async fn clear(&self) {
        match self {
            Self::Sqlite(writer) => drop(writer.write(sqlite::Work::Clear).await),
            Self::Postgres(session) => session.clear().await.unwrap_or_else(|error| give_up(&error)),
        }
    }
}

pub fn give_up(error: &dyn std::error::Error) -> ! {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    eprintln!("floor: {error}{cause}");
    process::exit(1)
}
