use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::StreamExt;
use tokio::task::JoinHandle;

use super::Message;
use crate::rig::{eventually, now};

/// Writes down every message on a subject. It hears only what is said while it is connected.
pub struct Listener {
    heard: Arc<Mutex<Vec<Message>>>,
    task: JoinHandle<()>,
}

impl Listener {
    pub(super) fn start(mut subscription: async_nats::Subscriber) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            while let Some(message) = subscription.next().await {
                let message = Message {
                    subject: message.subject.to_string(),
                    headers: message.headers.unwrap_or_default(),
                    body: message.payload,
                    at: now(),
                    sequence: 0,
                };
                written.lock().unwrap_or_else(PoisonError::into_inner).push(message);
            }
        });
        Self { heard, task }
    }

    pub fn heard(&self) -> Vec<Message> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn count(&self) -> usize {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits until at least this many messages have arrived; all of them.
    pub async fn wait_for(&self, messages: usize, limit: Duration) -> Vec<Message> {
        eventually(&format!("{messages} messages"), limit, async || (self.count() >= messages).then_some(())).await;
        self.heard()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}
