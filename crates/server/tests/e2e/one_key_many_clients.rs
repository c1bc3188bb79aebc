//! Many clients that create one and the same key at once, through two services on one PostgreSQL: there is one timer, and every
//! one of them is told the truth about it.
//!
//! ```text
//!   8 clients ──▶ timer serve ──┐
//!                               ├──▶ one row ──▶ one call
//!   8 clients ──▶ timer serve ──┘
//! ```

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::rig::{Answer, Backend, Client, Receiver, Service, callback_to, heavy};

const CLIENTS: usize = 16;
/// How many keys there are races for.
const ROUNDS: usize = 50;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Two services on one database, and clients with connections of their own; every second one speaks to the second service.
struct Field {
    backend: Backend,
    services: [Service; 2],
    clients: Vec<Client>,
    receiver: Receiver,
}

/// What the race for one key came to.
struct Round {
    key: String,
    answers: Vec<Answer>,
}

impl Field {
    async fn open() -> Self {
        let backend = Backend::postgres();
        let services = [Service::start(&backend).await, Service::start(&backend).await];
        let clients: Vec<Client> = (0..CLIENTS).map(|n| services[n % 2].client()).collect();
        let reach = async |client: &Client| assert_eq!(client.get("/healthz").await.status, 200);
        join_all(clients.iter().map(reach)).await;
        Self { backend, services, clients, receiver: Receiver::start() }
    }

    /// Every client asks for the same key at the same time with its own content, and then for the next key.
    async fn race(&self, delay: &str, mode: &str, content: impl Fn(usize) -> Value) -> Vec<Round> {
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let key = format!("order-{round}");
            let start = Arc::new(Barrier::new(CLIENTS));
            let one = |(n, client): (usize, &Client)| {
                let callback = callback_to(&self.receiver.url("/once"), &content(n));
                let timer = json!({"delay": delay, "key": key, "on_conflict": mode, "callback": callback});
                let (client, start) = (client.clone(), Arc::clone(&start));
                tokio::spawn(async move {
                    start.wait().await;
                    create(&client, &timer).await
                })
            };
            let answers = join_all(self.clients.iter().enumerate().map(one)).await;
            let answers = answers.into_iter().map(|answer| answer.expect("a client that does not panic")).collect();
            rounds.push(Round { key, answers });
        }
        self.print(mode, &rounds);
        rounds
    }

    fn print(&self, mode: &str, rounds: &[Round]) {
        let second = rounds.iter().filter(|round| round.winner() % 2 == 1).count();
        let winners = rounds.iter().map(Round::winner).collect::<std::collections::HashSet<_>>().len();
        println!(
            "PostgreSQL: {CLIENTS} clients for each of {ROUNDS} keys, {mode}: {winners} of them were first at least once, \
             the second {second} times"
        );
        assert!((1..ROUNDS).contains(&second), "no race between the services: the second was first {second} times");
    }

    async fn fire(&self, id: &str) {
        let path = format!("/timers/{id}/fire");
        let fired = self.clients[0].try_send("POST", &path, Some("{}".to_owned())).await.expect("an answer");
        assert_eq!(fired.status, 200, "{}", fired.text);
    }

    /// What each timer has delivered when all have ended: there is one for every key, and it was called once.
    async fn delivered(&self) -> HashMap<String, Value> {
        self.clients[0].wait_until_finished(TIMEOUT).await;
        let rows = throwaway::postgres().query(self.backend.url(), "SELECT count(*) FROM timers");
        assert_eq!(rows, ROUNDS.to_string(), "rows of {ROUNDS} keys");
        let calls = self.receiver.calls();
        let delivered: HashMap<String, Value> = calls.iter().map(|call| (call.timer_id().to_owned(), call.json())).collect();
        assert_eq!((delivered.len(), calls.len()), (ROUNDS, ROUNDS), "one call of each timer");
        delivered
    }

    async fn close(mut self) {
        for service in self.services.iter_mut().rev() {
            service.stop().await;
        }
    }
}

/// A store that is too slow on a busy machine has changed nothing, and says so: the client asks again.
async fn create(client: &Client, timer: &Value) -> Answer {
    loop {
        let answer = client.try_create(timer).await.expect("an answer");
        if answer.status != 503 {
            return answer;
        }
    }
}

impl Round {
    /// The one client that was told that its timer is new.
    fn winner(&self) -> usize {
        let is_new = |(n, answer): (usize, &Answer)| (answer.status == 201).then_some(n);
        let winners: Vec<usize> = self.answers.iter().enumerate().filter_map(is_new).collect();
        assert_eq!(winners.len(), 1, "{}: {:#?}", self.key, self.answers);
        winners[0]
    }

    fn id(&self) -> String {
        self.answers[self.winner()].id()
    }

    /// All but one are told the same.
    fn check_losers(&self, status: u16, message: &str) {
        let winner = self.winner();
        for (_, answer) in self.answers.iter().enumerate().filter(|(n, _)| *n != winner) {
            assert_eq!((answer.status, answer.message().as_str()), (status, message), "{}: {}", self.key, answer.text);
            if answer.is_success() {
                assert_eq!(answer.id(), self.id(), "{}", self.key);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_content_makes_one_timer_that_everybody_is_told_of() {
    let _machine = heavy().await;
    let field = Field::open().await;
    let rounds = field.race("1500ms", "reject", |_| json!("the same")).await;
    rounds.iter().for_each(|round| round.check_losers(200, "timer already exists"));
    let delivered = field.delivered().await;
    assert!(rounds.iter().all(|round| delivered.contains_key(&round.id())));
    field.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_different_contents_one_is_taken_and_the_others_are_refused() {
    let _machine = heavy().await;
    let field = Field::open().await;
    let rounds = field.race("1h", "reject", |writer| json!(writer)).await;
    for round in &rounds {
        round.check_losers(409, "a timer with this key exists and has other content");
        field.fire(&round.id()).await;
    }
    let delivered = field.delivered().await;
    for round in &rounds {
        assert_eq!(delivered.get(&round.id()), Some(&json!(round.winner())), "{}: the content of who was told so", round.key);
    }
    field.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_replace_each_other_leave_one_timer_with_the_content_of_one_of_them() {
    let _machine = heavy().await;
    let field = Field::open().await;
    let rounds = field.race("1h", "replace", |writer| json!(writer)).await;
    let mut last = HashMap::new();
    for round in &rounds {
        round.check_losers(200, "timer replaced successfully");
        let content = field.clients[1].timer(&round.id()).await["callback_config"]["payload"].clone();
        assert!(content.as_u64().is_some_and(|writer| writer < CLIENTS as u64), "{content}");
        assert_ne!(content, json!(round.winner()), "{}: the first was replaced by all others", round.key);
        field.fire(&round.id()).await;
        last.insert(round.id(), content);
    }
    assert_eq!(field.delivered().await, last, "what the timer said is what was delivered");
    field.close().await;
}
