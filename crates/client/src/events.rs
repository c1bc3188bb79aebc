//! Following what happens.

use bytes::BytesMut;
use futures_util::{Stream, stream};
use http::{HeaderName, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};

use crate::{Attempt, Client, Error, Filter, Instant, Json, Request, Timer, pauses, wire};

/// The longest line that is read: a timer in an event has no payload.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventQuery {
    pub filter: Filter,
    /// `created`, `changed`, `attempt`, `finished`, separated by commas; all unless given.
    pub types: Option<String>,
    /// The id of the event to go on after; from now on unless given.
    pub after: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    #[serde(rename = "type")]
    pub kind: String,
    pub event_id: String,
    #[serde(default, with = "wire::some_instant")]
    pub at: Option<Instant>,
    /// The timer, as lists show it.
    #[serde(default)]
    pub timer: Option<Timer>,
    /// The attempt that it is about.
    #[serde(default)]
    pub attempt: Option<Attempt>,
}

/// A stream of events that resumes by itself when its connection is lost.
pub struct Events {
    client: Client,
    query: EventQuery,
    open: Option<Lines>,
    failures: u32,
}

struct Lines {
    body: Incoming,
    held: BytesMut,
}

impl Lines {
    /// The next line; `None` at the end of the stream.
    async fn next(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line = self.held.split_to(end + 1);
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            if self.held.len() > LINE_BYTES_MAX {
                return Err("a line is too long".to_owned());
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => self.held.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
    }
}

impl Events {
    /// The next event as the service sent it; positions of a quiet stream among them. An error is one that would come again.
    pub async fn next_raw(&mut self) -> Result<(Event, Json), Error> {
        loop {
            if self.open.is_none() {
                match self.connect().await {
                    Ok(lines) => self.open = Some(lines),
                    Err(error) if error.is_passing() && self.failures > 0 => self.rest().await,
                    Err(error) => return Err(error),
                }
            }
            let Some(lines) = &mut self.open else { continue };
            match lines.next().await {
                Ok(Some(line)) => {
                    let json = Json::text(line.trim_end())?;
                    let event: Event = json.parse()?;
                    self.query.after = Some(event.event_id.clone());
                    self.failures = 0;
                    return Ok((event, json));
                }
                // The stream has ended, or its connection was lost: go on where it stopped.
                Ok(None) | Err(_) => {
                    self.open = None;
                    self.rest().await;
                }
            }
        }
    }

    async fn rest(&mut self) {
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(pauses::pause(self.failures, None, rand::random())).await;
    }

    async fn connect(&self) -> Result<Lines, Error> {
        let query = self.query.filter.query().with_some("types", self.query.types.clone());
        let mut request = Request::get(query.on("/events")).header(header::ACCEPT, "application/x-ndjson");
        if let Some(after) = &self.query.after {
            request = request.header(HeaderName::from_static("last-event-id"), after.clone());
        }
        Ok(Lines { body: self.client.stream(&request).await?, held: BytesMut::new() })
    }
}

impl Client {
    /// Follows what happens. The connection is made with the first event that is asked for.
    pub fn events(&self, query: EventQuery) -> Events {
        Events { client: self.clone(), query, open: None, failures: 0 }
    }

    /// The same as a stream, without positions. It ends with an error that would come again.
    pub fn watch(&self, query: EventQuery) -> impl Stream<Item = Result<Event, Error>> + Send + use<> {
        stream::unfold(Some(self.events(query)), async |events| {
            let mut events = events?;
            loop {
                match events.next_raw().await {
                    Ok((event, _)) if event.kind == "position" => {}
                    Ok((event, _)) => return Some((Ok(event), Some(events))),
                    Err(error) => return Some((Err(error), None)),
                }
            }
        })
    }
}
