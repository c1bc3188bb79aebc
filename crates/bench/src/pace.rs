//! Sends requests at a given rate, whether or not the service keeps up (open loop): the next request is sent when its time has
//! come, not when the last one is answered.

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
    ask::Ask,
    client::Connection,
    error::Failed,
    load::Answered,
    plan::Plan,
    requests::Requests,
    session::{Round, Session},
};

/// What is sent, and when.
#[derive(Debug, Clone)]
pub struct Sends {
    pub ask: Ask,
    /// The number of requests.
    pub count: u64,
    /// The time of each request, in the terms of due times.
    pub at: Plan,
    /// How much earlier than `at` a request is sent.
    pub ahead: Duration,
    pub connections: usize,
}

/// Requests that are being sent.
pub struct Pace {
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<Answered>>,
}

impl Pace {
    pub async fn begin(session: &Session, round: &Round, sends: &Sends) -> Result<Self, Failed> {
        let (next, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut workers = Vec::new();
        for _ in 0..sends.connections {
            let worker = Worker {
                connection: session.connect().await?,
                requests: session.requests(round),
                ask: sends.ask,
                at: sends.at.clone(),
                next: next.clone(),
                end: sends.count,
                ahead: i64::try_from(sends.ahead.as_micros()).unwrap_or(i64::MAX),
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

    /// Waits for the last answers. An answer time counts from when the request should have been sent if no connection was free
    /// then, which avoids coordinated omission.
    pub async fn finish(self) -> Result<Answered, Failed> {
        let mut answered = Answered::default();
        for worker in self.workers {
            answered.add(worker.await.map_err(|error| Failed::Run(format!("the load client failed: {error}.")))?);
        }
        Ok(answered)
    }
}

struct Worker {
    connection: Connection,
    requests: Requests,
    ask: Ask,
    at: Plan,
    next: Arc<AtomicU64>,
    end: u64,
    ahead: i64,
    stop: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
}

impl Worker {
    async fn run(mut self) -> Answered {
        let mut answered = Answered::default();
        let mut request = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end {
                break;
            }
            let began = self.wait_until(self.at.due(number) - self.ahead).await;
            answered.behind_max = answered.behind_max.max(self.clock.now().as_micros() - began);
            self.ask.write(&mut self.requests, number, &mut request);
            match self.connection.exchange(&request).await {
                Ok(answer) => answered.note(self.ask, &answer, 1, self.clock.now().as_micros() - began),
                Err(error) => {
                    answered.refuse(1, || format!("the connection broke: {error}"));
                    break;
                }
            }
        }
        answered
    }

    /// Returns the instant from which the answer time counts. A connection that was free in time and
    /// is woken late has waited for this process, not for the service.
    async fn wait_until(&self, wanted: i64) -> i64 {
        let early = wanted - self.clock.now().as_micros();
        if early <= 0 {
            return wanted;
        }
        tokio::time::sleep(Duration::from_micros(early.unsigned_abs())).await;
        self.clock.now().as_micros()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use domain::SystemClock;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::target::Target;

    const ANSWER_MICROS: i64 = 20_000;

    /// A service that takes its time for each request.
    async fn service() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 * 1024];
                    while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {
                        tokio::time::sleep(Duration::from_micros(ANSWER_MICROS.unsigned_abs())).await;
                        stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
                    }
                });
            }
        });
        address
    }

    async fn five_at_once(connections: usize) -> Answered {
        let target = Target::parse(&format!("http://{}", service().await), "key").unwrap();
        let receiver = IpAddr::from([127, 0, 0, 1]);
        let session = Session::open(target, receiver, 1, Duration::ZERO, Arc::new(SystemClock::default())).unwrap();
        let at = Plan::Every { first: session.now() + 500_000, gap: 0 };
        let round = session.begin_unheard(5, at.clone());
        let sends = Sends { ask: Ask::Create, count: 5, at, ahead: Duration::ZERO, connections };
        Pace::begin(&session, &round, &sends).await.unwrap().finish().await.unwrap()
    }

    #[tokio::test]
    async fn a_request_that_has_to_wait_for_a_connection_is_behind_and_its_answer_counts_from_its_time() {
        let answered = five_at_once(1).await;
        assert_eq!((answered.acknowledged, answered.refused), (5, 0));
        // The fifth is sent once four answers have come.
        assert!(answered.behind_max >= 4 * ANSWER_MICROS, "{answered:?}");
        assert!(answered.answers.iter().max() >= Some(&(5 * ANSWER_MICROS)), "{answered:?}");
    }

    #[tokio::test]
    async fn with_a_connection_for_each_request_none_waits_for_another() {
        let answered = five_at_once(5).await;
        assert_eq!(answered.acknowledged, 5);
        assert!(answered.behind_max < ANSWER_MICROS, "{answered:?}");
    }
}
