//! Creates timers at a given rate, whether or not the service keeps up (open loop): the next request is sent when it is due,
//! not when the last one is answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::Clock;
use tokio::task::JoinHandle;

use crate::{
    client::Connection,
    error::Failed,
    load::Created,
    plan::Plan,
    requests::Requests,
    session::{Round, Session},
};

/// Timers that are being created, each `ahead` of its due time.
pub struct Pace {
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<Created>>,
}

impl Pace {
    pub async fn begin(session: &Session, round: &Round, ahead: Duration, connections: usize) -> Result<Self, Failed> {
        let (next, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut workers = Vec::new();
        for _ in 0..connections {
            let worker = Worker {
                connection: session.connect().await?,
                requests: session.requests(round),
                plan: round.plan.clone(),
                next: next.clone(),
                end: round.timers,
                ahead: i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX),
                stop: stop.clone(),
                clock: session.clock.clone(),
            };
            workers.push(tokio::spawn(worker.run()));
        }
        Ok(Self { stop, workers })
    }

    /// Begins no more requests, except those that are late already.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the last answers. Answer times count from when the request should have been sent, which avoids coordinated
    /// omission.
    pub async fn finish(self) -> Result<Created, Failed> {
        let mut created = Created::default();
        for worker in self.workers {
            created.add(worker.await.map_err(|error| Failed::Run(format!("the load client failed: {error}.")))?);
        }
        Ok(created)
    }
}

struct Worker {
    connection: Connection,
    requests: Requests,
    plan: Plan,
    next: Arc<AtomicU64>,
    end: u64,
    ahead: i64,
    stop: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
}

impl Worker {
    async fn run(mut self) -> Created {
        let mut created = Created::default();
        let mut request = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end {
                break;
            }
            let wanted = self.plan.due(number) - self.ahead;
            let early = wanted - self.clock.now().as_micros();
            if early > 0 {
                tokio::time::sleep(Duration::from_micros(early.unsigned_abs())).await;
            }
            self.requests.create(number, &mut request);
            match self.connection.exchange(&request).await {
                Ok(answer) => created.note(&answer, 1, self.clock.now().as_micros() - wanted),
                Err(error) => {
                    created.refuse(1, || format!("the connection broke: {error}"));
                    break;
                }
            }
        }
        created
    }
}
