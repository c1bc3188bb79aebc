//! W4: what a large number of pending timers takes, in memory, on disk and in time.

use std::time::Duration;

use crate::{
    error::Failed,
    load::{Created, Load},
    plan::Plan,
    record::Held,
    session::{Round, Session},
};

const LOAD: Load = Load { connections: 8, timers_per_request: 500 };
/// The timers are due from one hour to twenty-five hours from now.
const FIRST_AFTER_MICROS: i64 = 3_600_000_000;
const SPAN_MICROS: i64 = 24 * 3_600_000_000;
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
        let plan = Plan::Scattered { from: session.now() + FIRST_AFTER_MICROS, span: SPAN_MICROS };
        Self { round: session.begin_unheard(timers_max, plan), timers: 0 }
    }

    pub const fn timers(&self) -> u64 {
        self.timers
    }

    /// Adds timers until there are `timers`, and measures what they take.
    pub async fn grow(&mut self, session: &Session, timers: u64) -> Result<Held, Failed> {
        let missing = self.timers..timers.max(self.timers);
        let created = if missing.is_empty() { None } else { Some(session.create(&self.round, missing, LOAD).await?) };
        if let Some(Created { refused: 1.., first_refusal, .. }) = &created {
            let why = first_refusal.as_deref().unwrap_or("no reason given");
            return Err(Failed::Run(format!("the service did not take all of {timers} pending timers: {why}.")));
        }
        self.timers = timers.max(self.timers);
        session.meter().stop().await;
        tokio::time::sleep(REST).await;
        look(session, self.timers, created.map(|created| created.rate())).await
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
