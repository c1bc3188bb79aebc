//! What all workloads share: the service, the sink, the clock, and the processes whose CPU time is measured.

use std::{
    fmt::Display,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use domain::Clock;
use serde_json::Value;

use crate::{
    client::Connection,
    error::Failed,
    ledger::Ledger,
    plan::Plan,
    processes::Watched,
    requests::{Requests, TIMERS_PER_NAMESPACE},
    sink::Sink,
    target::Target,
    usage::Meter,
};

/// How often arrivals are polled: seldom enough to cost nothing.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
const OPERATION_LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// After this long without a new arrival, missing timers count as lost.
const ARRIVAL_PAUSE_MAX: Duration = Duration::from_secs(15);

pub struct Session {
    pub clock: Arc<dyn Clock>,
    pub target: Target,
    pub watched: Watched,
    /// How far ahead a due time must be for the service to accept it.
    pub lead: Duration,
    sink: Sink,
}

/// The timers of one run, and the ledger for their calls.
#[derive(Debug, Clone)]
pub struct Round {
    pub timers: u64,
    pub ledger: Arc<Ledger>,
    pub plan: Plan,
    pub origins: Vec<String>,
    /// Whether the timers are created with ids, by which they can be canceled and updated one by one.
    pub has_ids: bool,
    /// Whether all timers are in one namespace, however many they are.
    pub is_one_namespace: bool,
}

impl Session {
    /// `receiver` is the address of this machine as the service reaches it, and `destinations` the most that a workload spreads its
    /// timers over.
    pub fn open(
        target: Target,
        receiver: IpAddr,
        destinations: usize,
        lead: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Failed> {
        let sink = Sink::start(receiver, destinations.max(1), clock.clone())
            .map_err(|error| Failed::Run(format!("no receiver can listen at {receiver}: {error}.")))?;
        let watched = Watched::find(target.address);
        Ok(Self { clock, target, watched, lead, sink })
    }

    /// Now, in microseconds since 1970, from the clock of due times and arrivals.
    pub fn now(&self) -> i64 {
        self.clock.now().as_micros()
    }

    /// Starts a round: from now on the sink expects `timers`, spread over `destinations`.
    pub fn begin(&self, timers: u64, destinations: usize, plan: Plan) -> Round {
        let ledger = Arc::new(Ledger::new(self.now().unsigned_abs(), timers));
        self.sink.note_in(ledger.clone());
        Round { timers, ledger, plan, origins: self.origins(destinations), has_ids: false, is_one_namespace: false }
    }

    /// Starts a round of timers that are due so late that their calls are not awaited.
    pub fn begin_unheard(&self, timers: u64, plan: Plan) -> Round {
        let ledger = Arc::new(Ledger::new(self.now().unsigned_abs(), 0));
        Round { timers, ledger, plan, origins: self.origins(1), has_ids: false, is_one_namespace: false }
    }

    fn origins(&self, destinations: usize) -> Vec<String> {
        self.sink.origins().iter().take(destinations.max(1)).cloned().collect()
    }

    /// The origin of the receiver that takes its time.
    pub fn slow_origin(&self) -> String {
        self.sink.slow_origin().to_owned()
    }

    pub fn slow_down(&self, pause: Duration) {
        self.sink.slow_down(pause);
    }

    /// Waits until the slow receiver has answered all its calls, so that none takes a permit from what follows.
    pub async fn wait_for_slow(&self) {
        while self.sink.slow_in_flight() > 0 {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    pub fn slow_in_flight_max(&self) -> u64 {
        self.sink.slow_in_flight_max()
    }

    /// Where the sink listens, and a ledger for calls that the load client makes itself.
    pub fn begin_without_service(&self, calls: u64) -> Result<(SocketAddr, Round), Failed> {
        let round = self.begin(calls, 1, Plan::Every { first: 0, gap: 0 });
        let address = self.sink.address().ok_or_else(|| Failed::Run("the receiver has no address.".to_owned()))?;
        Ok((address, round))
    }

    pub fn requests(&self, round: &Round) -> Requests {
        let (target, number) = (&self.target, round.ledger.round());
        let mut requests = Requests::new(&target.host, &target.api_key, &round.origins, number, round.plan.clone());
        if round.has_ids {
            requests = requests.with_ids();
        }
        if round.is_one_namespace {
            requests = requests.in_one_namespace();
        }
        requests
    }

    pub fn meter(&self) -> Meter {
        Meter::start(&self.clock, self.watched)
    }

    pub async fn connect(&self) -> Result<Connection, Failed> {
        let host = &self.target.host;
        Connection::open(self.target.address).await.map_err(|error| Failed::Run(format!("{host} cannot be reached: {error}.")))
    }

    /// Requests `path` and returns the body. Any status but 200 is a failure.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, Failed> {
        let mut request = Vec::new();
        self.requests(&self.begin_unheard(0, Plan::Every { first: 0, gap: 0 })).get(path, &mut request);
        let mut connection = self.connect().await?;
        let cannot = |cause: String| Failed::Run(format!("{}{path} cannot be asked: {cause}.", self.target.host));
        let answer = connection.exchange(&request).await.map_err(|error| cannot(error.to_string()))?;
        match answer.status {
            200 => Ok(answer.body.to_vec()),
            401 => Err(Failed::Option("the service does not know this API key.".to_owned())),
            status => Err(cannot(format!("it answers {status}"))),
        }
    }

    pub async fn sleep_until(&self, instant: i64) {
        let micros = instant.saturating_sub(self.now());
        tokio::time::sleep(Duration::from_micros(u64::try_from(micros).unwrap_or_default())).await;
    }

    /// Waits until all of `expected` timers have arrived, or no more arrive.
    pub async fn wait_for(&self, round: &Round, expected: u64) {
        self.wait_until_arrived(|| round.ledger.arrived(), expected).await;
    }

    /// The same for some of the timers, which `arrived` counts.
    pub async fn wait_until_arrived(&self, arrived: impl Fn() -> u64, expected: u64) {
        let (mut seen, mut since) = (arrived(), self.clock.monotonic());
        while seen < expected && self.clock.monotonic().saturating_sub(since) < ARRIVAL_PAUSE_MAX {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let now = arrived();
            if now != seen {
                (seen, since) = (now, self.clock.monotonic());
            }
        }
    }

    /// Cancels the remaining timers of a round, so that they do not fire into a later one.
    pub async fn clear(&self, round: &Round) -> Result<(), Failed> {
        if round.is_one_namespace {
            return self.clear_namespace(round).await;
        }
        let mut requests = self.requests(round);
        let mut request = Vec::new();
        let mut connection = self.connect().await?;
        for namespace in 0..round.timers.div_ceil(TIMERS_PER_NAMESPACE) {
            requests.cancel_namespace(namespace, &mut request);
            let status = connection.exchange(&request).await.map_err(left_over)?.status;
            if status != 200 {
                return Err(left_over(format!("the service answers {status}")));
            }
        }
        Ok(())
    }

    /// Cancels a namespace of any size: what is too much for one answer becomes an operation, whose end is waited for.
    async fn clear_namespace(&self, round: &Round) -> Result<(), Failed> {
        let mut request = Vec::new();
        self.requests(round).cancel_many(0, &mut request);
        let mut connection = self.connect().await?;
        let answer = connection.exchange(&request).await.map_err(left_over)?;
        let started: Value = match answer.status {
            200 => return Ok(()),
            202 => serde_json::from_slice(answer.body).map_err(left_over)?,
            status => return Err(left_over(format!("the service answers {status}"))),
        };
        let path = format!("/operations/{}", started["data"]["operation"]["id"].as_str().unwrap_or_default());
        loop {
            let operation: Value = serde_json::from_slice(&self.get(&path).await?).map_err(left_over)?;
            if operation["data"]["finished_at"].is_string() {
                return Ok(());
            }
            tokio::time::sleep(OPERATION_LOOK_INTERVAL).await;
        }
    }
}

fn left_over(why: impl Display) -> Failed {
    Failed::Run(format!("what is left over cannot be canceled: {why}."))
}
