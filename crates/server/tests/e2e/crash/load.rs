//! Callers that keep registering, changing and canceling timers, whatever happens to the service.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::history::{Change, History, NEW, OLD, Told};
use crate::rig::{Answer, Client, callback_to, micros, now};

const CALLERS: usize = 8;
/// Together about 200 creates a second.
const PAUSE: Duration = Duration::from_millis(40);

pub struct Load {
    callers: JoinSet<()>,
    stop: CancellationToken,
}

impl Load {
    pub fn start(client: Client, url: String, history: Arc<History>) -> Self {
        let stop = CancellationToken::new();
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let caller = Caller { client: client.clone(), url: url.clone(), history: Arc::clone(&history) };
            callers.spawn(caller.run(stop.clone()));
        }
        Self { callers, stop }
    }

    pub async fn stop(self) {
        self.stop.cancel();
        self.callers.join_all().await;
    }
}

struct Caller {
    client: Client,
    url: String,
    history: Arc<History>,
}

impl Caller {
    async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            // Half of them are due at once.
            let delay = if rand::random() { 0 } else { rand::random_range(0..2_000) };
            if let Some((id, mut told)) = self.create(delay).await {
                // Told at once: what follows may take until after the last kill.
                self.history.tell(&id, told.clone());
                match rand::random_range(0..10) {
                    0 | 1 => self.cancel(&id, &mut told).await,
                    2 | 3 => self.update(&id, &mut told).await,
                    4 => {
                        self.update(&id, &mut told).await;
                        self.cancel(&id, &mut told).await;
                    }
                    _ => {}
                }
                self.history.tell(&id, told);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn create(&self, delay_millis: u32) -> Option<(String, Told)> {
        let timer = json!({"delay": format!("{delay_millis}ms"), "callback": callback_to(&self.url, &json!({"version": OLD}))});
        let answer = self.client.try_create(&timer).await.ok().filter(|answer| answer.is_success())?;
        let execute_at = micros(answer.json()["data"]["execute_at"].as_str().expect("a due time"));
        Some((answer.id(), Told { execute_at, ..Told::default() }))
    }

    async fn cancel(&self, id: &str, told: &mut Told) {
        told.cancel = match self.client.try_cancel(id).await {
            Ok(answer) if answer.status == 200 => Change::Acknowledged(now()),
            Ok(answer) => other_than_done(&answer),
            Err(_) => Change::Unknown,
        };
    }

    async fn update(&self, id: &str, told: &mut Told) {
        let patch = json!({
            "delay": format!("{}ms", rand::random_range(0..1_000)),
            "callback": callback_to(&self.url, &json!({"version": NEW})),
        });
        told.update = match self.client.try_update(id, &patch).await {
            Ok(answer) if answer.status == 200 => {
                told.execute_at = micros(answer.json()["data"]["execute_at"].as_str().expect("a due time"));
                Change::Acknowledged(now())
            }
            Ok(answer) => other_than_done(&answer),
            Err(_) => Change::Unknown,
        };
        if told.update == Change::Unknown {
            // It may have a new time now.
            told.execute_at = i64::MIN;
        }
    }
}

fn other_than_done(answer: &Answer) -> Change {
    match answer.status {
        400 => Change::TooLate,
        503 => Change::Unknown,
        _ => panic!("an acknowledged timer cannot be changed: {answer:?}"),
    }
}
