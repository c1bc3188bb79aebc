use std::time::Duration;

use async_nats::jetstream::{
    self,
    consumer::{DeliverPolicy, pull::OrderedConfig},
};
use bytes::Bytes;
use futures_util::StreamExt;

use super::Message;
use crate::rig::tolerated;

/// Between two looks at a stream.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// A server that goes away while the stream is being read; what is missing is read at the next look.
const NEXT_MESSAGE_WITHIN: Duration = Duration::from_secs(5);

/// Reads a stream from its beginning, and goes on where it stopped. What it says is what the server has stored, with the time at
/// which it was: nothing depends on having listened.
pub struct Witness {
    jetstream: jetstream::Context,
    stream: String,
    seen: Vec<Message>,
}

impl Witness {
    pub(super) fn new(jetstream: jetstream::Context, stream: &str) -> Self {
        Self { jetstream, stream: stream.to_owned(), seen: Vec::new() }
    }

    /// How many messages the stream holds; `None` while the server does not say.
    pub async fn count(&self) -> Option<u64> {
        self.jetstream.get_stream(&self.stream).await.ok().map(|stream| stream.cached_info().state.messages)
    }

    /// Everything in the stream at this moment.
    pub async fn read(&mut self) -> &[Message] {
        // A server that is away or elects a leader has nothing to say; the next look finds it.
        drop(self.read_on().await);
        &self.seen
    }

    async fn read_on(&mut self) -> Result<(), async_nats::Error> {
        let stream = self.jetstream.get_stream(&self.stream).await?;
        let last = stream.cached_info().state.last_sequence;
        let mut next = self.seen.last().map_or(1, |message| message.sequence + 1);
        if next > last {
            return Ok(());
        }
        let from =
            OrderedConfig { deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next }, ..OrderedConfig::default() };
        let mut messages = stream.create_consumer(from).await?.messages().await?;
        while next <= last {
            let Some(message) = tokio::time::timeout(tolerated(NEXT_MESSAGE_WITHIN), messages.next()).await? else { break };
            let message = message?;
            let info = message.info()?;
            // A consumer that was lost is made again, and may begin a little earlier.
            if info.stream_sequence < next {
                continue;
            }
            next = info.stream_sequence + 1;
            let at = i64::try_from(info.published.unix_timestamp_nanos() / 1000)?;
            let sequence = info.stream_sequence;
            let (subject, headers) = (message.subject.to_string(), message.headers.clone().unwrap_or_default());
            self.seen.push(Message { subject, headers, body: Bytes::copy_from_slice(&message.payload), at, sequence });
        }
        Ok(())
    }

    /// Reads on until what is there is what was waited for; all of it.
    pub async fn wait_until(&mut self, what: &str, limit: Duration, is_there: impl Fn(&[Message]) -> bool) -> &[Message] {
        let deadline = tokio::time::Instant::now() + limit;
        while !is_there(self.read().await) {
            let count = self.seen.len();
            assert!(tokio::time::Instant::now() < deadline, "not within {limit:?}: {what}; {} has {count}", self.stream);
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        &self.seen
    }

    pub async fn wait_for(&mut self, messages: usize, limit: Duration) -> &[Message] {
        self.wait_until(&format!("{messages} messages"), limit, |seen| seen.len() >= messages).await
    }
}
