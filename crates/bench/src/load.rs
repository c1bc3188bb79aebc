//! Sends requests as fast as a number of connections get their answers (closed loop).

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use domain::Clock;

use crate::{
    ask::Ask,
    client::{Answer, Connection},
    error::Failed,
    requests::Requests,
    session::{Round, Session},
};

/// A service that refuses everything is given up after this many refusals.
const REFUSALS_MAX: u64 = 1_000;
const REFUSAL_CHARS_MAX: usize = 200;

/// How the requests are sent.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub connections: usize,
    /// How many timers go into one request; more than one only for creates, which become batches.
    pub timers_per_request: u64,
}

/// The answers to requests of one kind.
#[derive(Debug, Default)]
pub struct Answered {
    pub seconds: f64,
    pub acknowledged: u64,
    pub refused: u64,
    pub first_refusal: Option<String>,
    /// How long each answer took, in microseconds.
    pub answers: Vec<i64>,
    /// The longest that a request at a given rate had to wait for a connection, in microseconds.
    pub behind_max: i64,
}

impl Answered {
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.acknowledged as f64 / self.seconds } else { 0.0 }
    }

    pub fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.first_refusal = self.first_refusal.take().or(other.first_refusal);
        self.answers.extend(other.answers);
        self.behind_max = self.behind_max.max(other.behind_max);
    }

    /// Counts an answer about `timers`, which took `micros`.
    pub fn note(&mut self, ask: Ask, answer: &Answer<'_>, timers: u64, micros: i64) {
        self.answers.push(micros);
        let confirmed = ask.confirmed(answer, timers);
        self.acknowledged += confirmed;
        self.refuse(timers - confirmed, || describe(answer));
    }

    pub fn refuse(&mut self, timers: u64, why: impl FnOnce() -> String) {
        self.refused += timers;
        if self.first_refusal.is_none() && timers > 0 {
            self.first_refusal = Some(why());
        }
    }
}

impl Session {
    /// Creates the timers with these `numbers`.
    pub async fn create(&self, round: &Round, numbers: Range<u64>, load: Load) -> Result<Answered, Failed> {
        self.send(Ask::Create, round, numbers, load).await
    }

    /// Sends a request for each of these `numbers`. The connections are open before the time is taken.
    pub async fn send(&self, ask: Ask, round: &Round, numbers: Range<u64>, load: Load) -> Result<Answered, Failed> {
        let next = Arc::new(AtomicU64::new(numbers.start));
        let mut workers = Vec::new();
        for _ in 0..load.connections {
            workers.push(Worker {
                connection: self.connect().await?,
                ask,
                requests: self.requests(round),
                next: next.clone(),
                end: numbers.end,
                step: load.timers_per_request.max(1),
                clock: self.clock.clone(),
            });
        }
        let began = self.clock.monotonic();
        let tasks: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.run())).collect();
        let mut answered = Answered::default();
        for task in tasks {
            answered.add(task.await.map_err(|error| Failed::Run(format!("the load client failed: {error}.")))?);
        }
        answered.seconds = self.clock.monotonic().saturating_sub(began).as_secs_f64();
        // What no connection sent any more was not done either.
        let missing = (numbers.end - numbers.start).saturating_sub(answered.acknowledged + answered.refused);
        answered.refuse(missing, || "given up".to_owned());
        Ok(answered)
    }
}

struct Worker {
    connection: Connection,
    ask: Ask,
    requests: Requests,
    next: Arc<AtomicU64>,
    end: u64,
    step: u64,
    clock: Arc<dyn Clock>,
}

impl Worker {
    async fn run(mut self) -> Answered {
        let mut answered = Answered::default();
        let mut request = Vec::new();
        while answered.refused < REFUSALS_MAX {
            let first = self.next.fetch_add(self.step, Ordering::Relaxed);
            if first >= self.end {
                break;
            }
            let numbers = first..(first + self.step).min(self.end);
            let timers = numbers.end - numbers.start;
            if timers == 1 {
                self.ask.write(&mut self.requests, first, &mut request);
            } else {
                self.requests.batch(numbers, &mut request);
            }
            let began = self.clock.monotonic();
            match self.connection.exchange(&request).await {
                Ok(answer) => {
                    let took = self.clock.monotonic().saturating_sub(began);
                    answered.note(self.ask, &answer, timers, i64::try_from(took.as_micros()).unwrap_or(i64::MAX));
                }
                // The connection is broken, and the outcome of this request is unknown.
                Err(error) => {
                    answered.refuse(timers, || format!("the connection broke: {error}"));
                    break;
                }
            }
        }
        answered
    }
}

fn describe(answer: &Answer<'_>) -> String {
    let body: String = String::from_utf8_lossy(answer.body).chars().take(REFUSAL_CHARS_MAX).collect();
    format!("{} {body}", answer.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusal_is_kept() {
        let mut answered = Answered::default();
        answered.refuse(0, || "none".to_owned());
        answered.refuse(2, || describe(&Answer { status: 400, body: b"no" }));
        answered.refuse(1, || "later".to_owned());
        assert_eq!((answered.refused, answered.first_refusal.as_deref()), (3, Some("400 no")));
    }
}
