//! PostgreSQL: one statement, and so one commit, for each batch.

use tokio::task::spawn_local;
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use crate::{
    Result, clock,
    timer::{Due, Timer},
};

/// Tables that were empty when they were last analysed would be read as a whole. Every statement finds its rows by their ids, so each is
/// planned once, and by its indexes.
const OPTIONS: &str =
    "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off";

/// Makes the tables, and returns what is pending.
pub async fn open(url: &str) -> Result<(Config, Vec<Due>)> {
    let mut config: Config = url.parse()?;
    config.options(OPTIONS);
    let client = connect(&config).await?;
    client.batch_execute(include_str!("../../sql/postgres_schema.sql")).await?;
    let rows = client.query("SELECT due_at, id FROM due", &[]).await?;
    Ok((config, rows.iter().map(|row| Due { at: row.get("due_at"), id: row.get("id") }).collect()))
}

async fn connect(config: &Config) -> std::result::Result<Client, Error> {
    let (client, connection) = config.connect(NoTls).await?;
    // The statements tell why it ended.
    spawn_local(async { drop(connection.await) });
    Ok(client)
}

/// A connection with its statements.
#[derive(Debug)]
pub struct Session {
    client: Client,
    create: Statement,
    claim: Statement,
    complete: Statement,
}

impl Session {
    pub async fn open(config: &Config) -> std::result::Result<Self, Error> {
        let client = connect(config).await?;
        let create = client.prepare(include_str!("../../sql/postgres_create.sql")).await?;
        let claim = client.prepare(include_str!("../../sql/postgres_claim.sql")).await?;
        let complete = client.prepare(include_str!("../../sql/postgres_complete.sql")).await?;
        Ok(Self { client, create, claim, complete })
    }

    pub async fn create(&self, timers: &[Timer]) -> std::result::Result<(), Error> {
        let ids: Vec<i64> = timers.iter().map(|timer| timer.due.id).collect();
        let due: Vec<i64> = timers.iter().map(|timer| timer.due.at).collect();
        let urls: Vec<&str> = timers.iter().map(|timer| timer.url.as_str()).collect();
        let bodies: Vec<&[u8]> = timers.iter().map(|timer| timer.body.as_slice()).collect();
        self.client.execute(&self.create, &[&ids, &due, &urls, &bodies]).await?;
        Ok(())
    }

    pub async fn claim(&self, due: &[Due]) -> std::result::Result<Vec<Timer>, Error> {
        let rows = self.client.query(&self.claim, &[&ids(due), &clock::now_micros()]).await?;
        let timer = |row: &tokio_postgres::Row| {
            let due = Due { at: row.try_get("due_at")?, id: row.try_get("id")? };
            Ok(Timer { due, url: row.try_get("url")?, body: row.try_get("body")? })
        };
        rows.iter().map(timer).collect()
    }

    pub async fn complete(&self, due: &[Due]) -> std::result::Result<(), Error> {
        self.client.execute(&self.complete, &[&ids(due)]).await?;
        Ok(())
    }

    pub async fn clear(&self) -> std::result::Result<(), Error> {
        self.client.batch_execute("DELETE FROM due; DELETE FROM payload").await
    }
}

fn ids(due: &[Due]) -> Vec<i64> {
    due.iter().map(|due| due.id).collect()
}
