use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use commands::{Commands, Event, Following};
use domain::Timestamp;
use http::{HeaderMap, header};
use serde_json::json;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{EventView, token};
use crate::Api;

/// How often there is a heartbeat, and the key of the client is looked at again. A client that has gone away is noticed when
/// something is written to it.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    ServerSentEvents,
    JsonLines,
}

impl Format {
    pub(super) fn wanted(asked: &HeaderMap) -> Self {
        let accepted = asked.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut kinds = accepted.flat_map(|kinds| kinds.split(',')).filter_map(|kind| kind.split(';').next());
        let lines = kinds.any(|kind| kind.trim().eq_ignore_ascii_case(Self::JsonLines.content_type()));
        if lines { Self::JsonLines } else { Self::ServerSentEvents }
    }

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::ServerSentEvents => "text/event-stream",
            Self::JsonLines => "application/x-ndjson",
        }
    }

    fn event(self, event: &Event, now: Timestamp, text: &mut String) {
        let view = EventView::of(event, now);
        // Only what cannot be JSON fails, and nothing of a view is that.
        let json = serde_json::to_string(&view).unwrap_or_default();
        match self {
            Self::ServerSentEvents => {
                text.extend(["event: ", view.kind, "\nid: ", &view.event_id, "\ndata: ", &json, "\n\n"]);
            }
            Self::JsonLines => text.extend([&json, "\n"]),
        }
    }

    /// Says up to where everything was sent. In server-sent events a client remembers an id without data, and reports no event.
    fn position(self, position: Timestamp) -> String {
        let id = token::write(position);
        match self {
            Self::ServerSentEvents => format!(": position\nid: {id}\n\n"),
            Self::JsonLines => format!("{}\n", json!({"type": "position", "event_id": id})),
        }
    }
}

/// What one client is sent, a frame at a time: each is made when the one before has been written, so that a slow client holds one
/// frame and no more.
pub(super) struct Feed {
    api: Api,
    commands: Arc<Commands>,
    following: Following,
    format: Format,
    /// The key as the client has shown it.
    shown: Vec<u8>,
    stopping: CancellationToken,
    /// When the next heartbeat is due; the first is at once, for clients that wait for one.
    sign_at: Instant,
}

impl Feed {
    pub(super) fn new(
        api: Api,
        commands: Arc<Commands>,
        following: Following,
        format: Format,
        shown: Vec<u8>,
        stopping: CancellationToken,
    ) -> Self {
        Self { api, commands, following, format, shown, stopping, sign_at: Instant::now() }
    }

    /// The next frame; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let stopping = self.stopping.clone();
        stopping.run_until_cancelled(self.frame()).await.flatten()
    }

    async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if Instant::now() >= self.sign_at {
                if !self.is_still_permitted().await {
                    return None;
                }
                self.sign_at = Instant::now() + SIGN_OF_LIFE;
                return Some(self.format.position(self.following.position()).into());
            }
            match timeout_at(self.sign_at, self.following.next()).await {
                Ok(Ok(events)) if events.is_empty() => tokio::task::yield_now().await,
                Ok(Ok(events)) => return Some(self.frame_of(&events)),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a stream of events ends early");
                    return None;
                }
                Err(_) => {}
            }
        }
    }

    fn frame_of(&self, events: &[Arc<Event>]) -> Bytes {
        let (now, mut text) = (self.commands.clock.now(), String::new());
        for event in events {
            self.format.event(event, now, &mut text);
        }
        text.into()
    }

    /// Whether the key was not revoked meanwhile. A store that does not answer ends no stream.
    async fn is_still_permitted(&self) -> bool {
        self.commands.caller.is_administrator() || !matches!(self.api.keyring.find(&self.shown).await, Ok(None))
    }
}
