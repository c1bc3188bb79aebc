//! Callers that keep registering, reading, changing and canceling timers, whatever happens to the services.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    Act, History,
    order::{self, Status},
};
use crate::rig::{Answer, Client, at_scale, callback_to, instant, micros, now};

const CALLERS: usize = 8;

/// The services that callers go to.
#[derive(Clone)]
pub struct Apis(Arc<Mutex<Vec<Client>>>);

impl Apis {
    pub fn new(clients: Vec<Client>) -> Self {
        Self(Arc::new(Mutex::new(clients)))
    }

    pub fn set(&self, clients: Vec<Client>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = clients;
    }

    pub fn any(&self, numbers: &mut impl Rng) -> Client {
        let clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients[numbers.random_range(0..clients.len())].clone()
    }
}

/// What callers do.
#[derive(Debug, Clone, Copy)]
pub struct Mixture {
    /// All together.
    pub creates_per_second: u32,
    /// Half of the timers are due at once, the others within this time.
    pub due_within: Duration,
    /// Whether a create without an answer is sent again, as a careful caller does.
    pub repeats_creates: bool,
}

impl Default for Mixture {
    fn default() -> Self {
        Self { creates_per_second: at_scale(200, 100), due_within: Duration::from_secs(2), repeats_creates: false }
    }
}

impl Mixture {
    /// So many creates that a kill finds some calls under way.
    pub fn dense() -> Self {
        Self { creates_per_second: 200, ..Self::default() }
    }
}

pub struct Load {
    callers: JoinSet<()>,
    stop: CancellationToken,
}

impl Load {
    pub fn start(apis: &Apis, url: String, history: &Arc<History>, mixture: Mixture, seed: u64) -> Self {
        let stop = CancellationToken::new();
        let mut callers = JoinSet::new();
        let asker = Asker::new(url, Arc::clone(history));
        for number in 0..CALLERS {
            let numbers = StdRng::seed_from_u64(seed.wrapping_add(number as u64));
            let caller = Caller { asker: asker.clone(), apis: apis.clone(), mixture, numbers };
            callers.spawn(caller.call_on(stop.clone()));
        }
        Self { callers, stop }
    }

    pub async fn stop(self) {
        self.stop.cancel();
        self.callers.join_all().await;
    }
}

struct Caller {
    asker: Asker,
    apis: Apis,
    mixture: Mixture,
    numbers: StdRng,
}

impl Caller {
    async fn call_on(mut self, stop: CancellationToken) {
        let pause = Duration::from_secs(1) * u32::try_from(CALLERS).expect("few") / self.mixture.creates_per_second;
        while !stop.is_cancelled() {
            let begun = tokio::time::Instant::now();
            self.call().await;
            // An even flow: what the questions took is no part of the pause.
            tokio::time::sleep_until(begun + pause).await;
        }
    }

    async fn call(&mut self) {
        let millis_max = u32::try_from(self.mixture.due_within.as_millis()).expect("soon");
        let is_due_at_once = !self.mixture.repeats_creates && self.numbers.random();
        let delay = if is_due_at_once { 0 } else { self.numbers.random_range(0..millis_max) };
        let key = self.asker.new_key();
        if !self.create(&key, delay).await {
            return;
        }
        let (later, client, other) = (self.numbers.random_range(0..1_000), self.client(), self.client());
        match self.numbers.random_range(0..10) {
            0 | 1 => self.asker.cancel(&client, &key).await,
            2 | 3 => self.asker.update(&client, &key, 2, later).await,
            4 => {
                self.asker.update(&client, &key, 2, later).await;
                self.asker.cancel(&other, &key).await;
            }
            5 => self.asker.read(&client, &key).await,
            _ => {}
        }
    }

    fn client(&mut self) -> Client {
        self.apis.any(&mut self.numbers)
    }

    async fn create(&mut self, key: &str, delay_millis: u32) -> bool {
        if !self.mixture.repeats_creates {
            let client = self.client();
            return self.asker.create(&client, key, delay_millis).await;
        }
        const TRIES_MAX: usize = 5;
        let order = self.asker.order(key, now() + REPEATED_MICROS_AHEAD + i64::from(delay_millis) * 1_000);
        for _ in 0..TRIES_MAX {
            if order.send(&self.apis.any(&mut self.numbers)).await {
                return true;
            }
        }
        false
    }
}

/// Long enough ahead for the last try not to come too late.
const REPEATED_MICROS_AHEAD: i64 = 2_000_000;

/// Asks, and tells the history.
#[derive(Clone)]
pub struct Asker {
    url: String,
    history: Arc<History>,
    keys: Arc<AtomicUsize>,
}

impl Asker {
    pub fn new(url: String, history: Arc<History>) -> Self {
        Self { url, history, keys: Arc::default() }
    }

    pub fn new_key(&self) -> String {
        format!("key-{}", self.keys.fetch_add(1, Ordering::Relaxed))
    }

    fn payload(key: &str, version: u32) -> serde_json::Value {
        json!({"key": key, "version": version})
    }

    /// Says whether it was acknowledged.
    pub async fn create(&self, client: &Client, key: &str, delay_millis: u32) -> bool {
        let timer = json!({
            "delay": format!("{delay_millis}ms"), "key": key, "callback": callback_to(&self.url, &Self::payload(key, FIRST)),
        });
        let act = Act::Create { version: FIRST };
        let question = self.history.ask(key, act, Some(now() + i64::from(delay_millis) * 1_000));
        match client.try_create(&timer).await {
            Ok(answer) if answer.status == 201 => {
                self.history.answered(&question, act);
                self.history.known_as(key, answer.id());
                self.history.due(key, FIRST, due(&answer));
                true
            }
            Ok(answer) if answer.status == 503 => false,
            Ok(answer) => panic!("a new timer is refused: {answer:?}"),
            Err(_) => false,
        }
    }

    /// A create that can be sent several times, for the same instant.
    pub fn order(&self, key: &str, at: i64) -> Order<'_> {
        let timer = json!({
            "execute_at": instant(at), "key": key, "callback": callback_to(&self.url, &Self::payload(key, FIRST)),
        });
        let question = self.history.ask(key, Act::Create { version: FIRST }, Some(at));
        Order { asker: self, key: key.to_owned(), timer, question }
    }

    pub async fn update(&self, client: &Client, key: &str, version: u32, delay_millis: u32) {
        let Some(id) = self.history.id(key) else { return };
        let patch =
            json!({"delay": format!("{delay_millis}ms"), "callback": callback_to(&self.url, &Self::payload(key, version))});
        let act = Act::Update { version };
        let question = self.history.ask(key, act, Some(now() + i64::from(delay_millis) * 1_000));
        match client.try_update(&id, &patch).await {
            Ok(answer) if answer.status == 200 => {
                self.history.answered(&question, act);
                self.history.due(key, version, due(&answer));
            }
            Ok(answer) => self.not_done(&question, &answer),
            Err(_) => {}
        }
    }

    pub async fn cancel(&self, client: &Client, key: &str) {
        let Some(id) = self.history.id(key) else { return };
        let question = self.history.ask(key, Act::Cancel, None);
        match client.try_cancel(&id).await {
            Ok(answer) if answer.status == 200 => self.history.answered(&question, Act::Cancel),
            Ok(answer) => self.not_done(&question, &answer),
            Err(_) => {}
        }
    }

    pub async fn read(&self, client: &Client, key: &str) {
        let Some(id) = self.history.id(key) else { return };
        let question = self.history.ask(key, Act::Nothing, None);
        let answer = client.try_send("GET", &format!("/timers/{id}"), None).await;
        match answer {
            Ok(answer) if answer.status == 200 => self.history.answered(&question, order::read(&answer.json()["data"])),
            Ok(answer) => assert_eq!(answer.status, 503, "an acknowledged timer cannot be read: {answer:?}"),
            Err(_) => {}
        }
    }

    fn not_done(&self, question: &super::Question, answer: &Answer) {
        match answer.status {
            400 => {
                let message = answer.message();
                let met = message.split('\'').nth(1).unwrap_or_else(|| panic!("a status in {message}"));
                let status = if met == "pending" { Status::Live } else { order::status(&json!(met)) };
                self.history.answered(question, Act::Refused(status));
            }
            // Another client changes it all the time: this one was not done.
            409 => self.history.answered(question, Act::Nothing),
            503 => {}
            _ => panic!("an acknowledged timer cannot be changed: {answer:?}"),
        }
    }
}

const FIRST: u32 = 1;

pub struct Order<'a> {
    asker: &'a Asker,
    key: String,
    timer: serde_json::Value,
    question: super::Question,
}

impl Order<'_> {
    /// Says whether it was acknowledged.
    async fn send(&self, client: &Client) -> bool {
        match client.try_create(&self.timer).await {
            Ok(answer) if answer.status == 201 || answer.status == 200 => {
                self.asker.history.answered(&self.question, Act::Create { version: FIRST });
                self.asker.history.known_as(&self.key, answer.id());
                true
            }
            Ok(answer) => {
                // Too late to be registered, so it is not there.
                let is_too_late = answer.status == 400 && answer.message().contains("execute_at");
                assert!(answer.status == 503 || is_too_late, "a repeated create is refused: {answer:?}");
                false
            }
            Err(_) => false,
        }
    }
}

fn due(answer: &Answer) -> i64 {
    micros(answer.json()["data"]["execute_at"].as_str().expect("a due time"))
}
