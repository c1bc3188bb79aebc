use serde_json::{Value, json};

use super::{Backend, Pending, Receiver, Service, callback_to, now};

/// Many pending timers that no client has to register one by one.
pub struct Crowd<'a> {
    pub timers: usize,
    pub payload: &'a Value,
    /// When the n-th is due, in microseconds, as every database understands it.
    pub at: String,
}

/// Copies one timer that the service has registered itself.
pub async fn fill(backend: &Backend, receiver: &Receiver, crowd: &Crowd<'_>) {
    let mut service = Service::start(backend).await;
    service.client().create(&json!({"delay": "1000d", "callback": callback_to(&receiver.url("/crowd"), crowd.payload)})).await;
    service.stop().await;
    backend.add_pending(&Pending { count: crowd.timers, created_at: now(), due_at: &crowd.at });
}
