//! Creates timers, as fast as a number of connections get their answers.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use domain::Clock;

use crate::{
    client::{Answer, Connection},
    error::Failed,
    requests::Requests,
    session::{Round, Session},
    wire,
};

/// A service that refuses everything is given up after this many refusals.
const REFUSALS_MAX: u64 = 1_000;
const REFUSAL_CHARS_MAX: usize = 200;
/// The status of each timer that a batch has registered.
const REGISTERED: &[u8] = br#""status":201"#;

/// How the timers are created.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub connections: usize,
    /// How many timers go into one request; 1 means `POST /timers`.
    pub timers_per_request: u64,
}

/// The results of the creates.
#[derive(Debug, Default)]
pub struct Created {
    pub seconds: f64,
    pub acknowledged: u64,
    pub refused: u64,
    pub first_refusal: Option<String>,
    /// How long each answer took, in microseconds.
    pub answers: Vec<i64>,
}

impl Created {
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.acknowledged as f64 / self.seconds } else { 0.0 }
    }

    pub fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.first_refusal = self.first_refusal.take().or(other.first_refusal);
        self.answers.extend(other.answers);
    }

    /// Counts an answer about `timers`, which took `micros`.
    pub fn note(&mut self, answer: &Answer<'_>, timers: u64, micros: i64) {
        self.answers.push(micros);
        let registered = registered(answer, timers).min(timers);
        self.acknowledged += registered;
        self.refuse(timers - registered, || describe(answer));
    }

    pub fn refuse(&mut self, timers: u64, why: impl FnOnce() -> String) {
        self.refused += timers;
        if self.first_refusal.is_none() && timers > 0 {
            self.first_refusal = Some(why());
        }
    }
}

impl Session {
    /// Creates the timers with these `numbers`. The connections are open before the time is taken.
    pub async fn create(&self, round: &Round, numbers: Range<u64>, load: Load) -> Result<Created, Failed> {
        let next = Arc::new(AtomicU64::new(numbers.start));
        let mut workers = Vec::new();
        for _ in 0..load.connections {
            workers.push(Worker {
                connection: self.connect().await?,
                requests: self.requests(round),
                next: next.clone(),
                end: numbers.end,
                step: load.timers_per_request.max(1),
                clock: self.clock.clone(),
            });
        }
        let began = self.clock.monotonic();
        let tasks: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.run())).collect();
        let mut created = Created::default();
        for task in tasks {
            created.add(task.await.map_err(|error| Failed::Run(format!("the load client failed: {error}.")))?);
        }
        created.seconds = self.clock.monotonic().saturating_sub(began).as_secs_f64();
        // Timers that no connection sent any more were not registered either.
        let missing = (numbers.end - numbers.start).saturating_sub(created.acknowledged + created.refused);
        created.refuse(missing, || "given up".to_owned());
        Ok(created)
    }
}

struct Worker {
    connection: Connection,
    requests: Requests,
    next: Arc<AtomicU64>,
    end: u64,
    step: u64,
    clock: Arc<dyn Clock>,
}

impl Worker {
    async fn run(mut self) -> Created {
        let mut created = Created::default();
        let mut request = Vec::new();
        while created.refused < REFUSALS_MAX {
            let first = self.next.fetch_add(self.step, Ordering::Relaxed);
            if first >= self.end {
                break;
            }
            let numbers = first..(first + self.step).min(self.end);
            let timers = numbers.end - numbers.start;
            if timers == 1 {
                self.requests.create(first, &mut request);
            } else {
                self.requests.batch(numbers, &mut request);
            }
            let began = self.clock.monotonic();
            match self.connection.exchange(&request).await {
                Ok(answer) => {
                    let took = self.clock.monotonic().saturating_sub(began);
                    created.note(&answer, timers, i64::try_from(took.as_micros()).unwrap_or(i64::MAX));
                }
                // The connection is broken, and the outcome of this request is unknown.
                Err(error) => {
                    created.refuse(timers, || format!("the connection broke: {error}"));
                    break;
                }
            }
        }
        created
    }
}

/// How many timers an answer confirms to be on disk.
fn registered(answer: &Answer<'_>, timers: u64) -> u64 {
    match (timers, answer.status) {
        (1, 201) => 1,
        (2.., 200) => wire::occurrences(answer.body, REGISTERED) as u64,
        _ => 0,
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
    fn only_what_the_answer_says_is_registered_counts() {
        let table: [(u16, &[u8], u64, u64); 6] = [
            (201, b"{}", 1, 1),
            (200, b"{}", 1, 0),
            (400, b"{}", 1, 0),
            (200, br#"[{"status":201,"timer":{"status":"pending"}},{"status":400}]"#, 500, 1),
            (503, br#"[{"status":201}]"#, 500, 0),
            (200, b"", 500, 0),
        ];
        for (status, body, step, expected) in table {
            assert_eq!(registered(&Answer { status, body }, step), expected, "{status} {step}");
        }
    }

    #[test]
    fn the_first_refusal_is_kept() {
        let mut created = Created::default();
        created.refuse(0, || "none".to_owned());
        created.refuse(2, || describe(&Answer { status: 400, body: b"no" }));
        created.refuse(1, || "later".to_owned());
        assert_eq!((created.refused, created.first_refusal.as_deref()), (3, Some("400 no")));
    }
}
