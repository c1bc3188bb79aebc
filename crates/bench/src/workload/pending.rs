//! W4: what a large number of pending timers takes, in memory, on disk and in time.

use std::time::Duration;

use crate::{
    error::Failed,
    load::{Answered, Load},
    plan,
    record::Held,
    session::{Round, Session},
};

const LOAD: Load = Load { connections: 8, timers_per_request: 500 };
/// The number of requests of which the median counts.
const ASKED: usize = 5;
const FIRST_PAGE: &str = "/timers?limit=50";
const COUNT: &str = "/timers?status=pending&limit=1";
/// The pause for what a store does after a heavy load, such as a checkpoint of its log.
const REST: Duration = Duration::from_secs(2);

/// A growing number of pending timers.
pub struct Pile {
    round: Round,
    timers: u64,
}

impl Pile {
    /// Starts without timers; at most `timers_max` will be created.
    pub fn begin(session: &Session, timers_max: u64) -> Self {
        Self { round: session.begin_unheard(timers_max, plan::much_later(session.now())), timers: 0 }
    }

    /// The same in a single namespace, as the timers of one tenant are.
    pub fn begin_in_one_namespace(session: &Session, timers_max: u64) -> Self {
        let Self { round, timers } = Self::begin(session, timers_max);
        Self { round: Round { is_one_namespace: true, ..round }, timers }
    }

    pub const fn round(&self) -> &Round {
        &self.round
    }

    pub const fn timers(&self) -> u64 {
        self.timers
    }

    /// Adds timers until there are `timers`, and measures what they take.
    pub async fn grow(&mut self, session: &Session, timers: u64) -> Result<Held, Failed> {
        let fill_rate = self.fill(session, timers).await?;
        look(session, self.timers, fill_rate).await
    }

    /// Adds timers until there are `timers`, and says how many a second that were.
    pub async fn fill(&mut self, session: &Session, timers: u64) -> Result<Option<f64>, Failed> {
        let missing = self.timers..timers.max(self.timers);
        let created = if missing.is_empty() { None } else { Some(session.create(&self.round, missing, LOAD).await?) };
        if let Some(Answered { refused: 1.., first_refusal, .. }) = &created {
            let why = first_refusal.as_deref().unwrap_or("no reason given");
            return Err(Failed::Run(format!("the service did not take all of {timers} pending timers: {why}.")));
        }
        self.timers = timers.max(self.timers);
        session.meter().stop().await;
        tokio::time::sleep(REST).await;
        Ok(created.map(|created| created.rate()))
    }

    /// Cancels all of them.
    pub async fn clear(&self, session: &Session) -> Result<(), Failed> {
        session.clear(&self.round).await
    }
}

async fn look(session: &Session, timers: u64, fill_rate: Option<f64>) -> Result<Held, Failed> {
    let memory = session.watched.service_memory();
    let store_bytes = session.watched.store_bytes();
    Ok(Held {
        timers,
        fill_rate,
        resident_bytes: memory.map(|memory| memory.resident),
        resident_bytes_max: memory.map(|memory| memory.resident_max),
        database_bytes: session.watched.database_memory_bytes(),
        store_bytes,
        first_page_ms: ask(session, FIRST_PAGE).await?,
        count_ms: ask(session, COUNT).await?,
    })
}

async fn ask(session: &Session, path: &str) -> Result<f64, Failed> {
    let mut took = Vec::new();
    for _ in 0..ASKED {
        let began = session.clock.monotonic();
        session.get(path).await?;
        took.push(session.clock.monotonic().saturating_sub(began).as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok(took[ASKED / 2])
}
