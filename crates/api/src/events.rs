//! `GET /events`: what happens to timers, as a stream that ends when the client or the service does.

mod feed;
mod parameters;
mod token;

use std::convert::Infallible;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use commands::{CommandError, Event};
use domain::{Invalid, Timestamp};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use self::{
    feed::{Feed, Format},
    parameters::{Parameters, Wanted},
};
use crate::{
    Api, Connected, attempts::AttemptView, auth::Permitted, envelope::ErrorEnvelope, error::ApiError, filter::FilterParameters,
    schema, view::TimerView,
};

/// Something that happened to a timer. `type`, `at` and the timer's `id` identify it: a resumed stream may repeat some.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventView {
    #[serde(rename = "type")]
    #[schema(value_type = schema::TimerEventType)]
    kind: &'static str,
    /// Where to resume after this event: send it as `Last-Event-ID` or `after`.
    event_id: String,
    /// When it happened, in UTC.
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T12:00:00.004Z")]
    at: Timestamp,
    /// The timer as it stood when the event was sent; of an end, with the status in which it ended.
    timer: TimerView,
    /// The attempt, in events of type `attempt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<AttemptView>,
}

impl EventView {
    fn of(event: &Event, now: Timestamp) -> Self {
        Self {
            kind: event.kind.as_str(),
            event_id: token::write(event.resume),
            at: event.at,
            timer: TimerView::of(event.timer.clone(), now),
            attempt: event.attempt.clone().map(AttemptView::from),
        }
    }
}

/// Follow what happens
///
/// A stream of what happens to the timers that match, on whichever node: `created`, `changed` (its content or its due time, also by
/// a retry or a revival), `attempt` (as far as attempts are recorded), `finished` (canceled, too). Server-sent events, or one JSON
/// object a line with `Accept: application/x-ndjson`. It goes on until one side closes it; every 10 seconds there is a heartbeat
/// with the position that the stream has reached: a comment with an `id`, or a line of type `position`.
///
/// To resume, send the last id as `Last-Event-ID`, which browsers do by themselves, or as `after`, to any node and within 24 hours.
/// A resumed stream repeats what happened in the last few seconds before the interruption, and misses nothing of what is recorded and not
/// yet removed, except of a write that stays open while 200,000 later events are read. On MongoDB, Cassandra and DynamoDB a crash can keep an
/// event from being recorded. A client that reads slowly loses nothing by that: it is sent what it has missed as soon as it reads on. A key
/// may have 8 streams, and all keys together 256.
#[utoipa::path(
    get, path = "/events", tag = "timers", operation_id = "followEvents", security(("ApiKey" = [])),
    params(
        FilterParameters,
        Parameters,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client has seen. Stands above `after`."),
    ),
    responses(
        (
            status = 200, description = "The stream.",
            content((EventView = "text/event-stream"), (EventView = "application/x-ndjson"))
        ),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn events(
    State(api): State<Api>,
    Permitted(commands): Permitted,
    request: Request,
) -> Result<Response, ApiError> {
    let asked = request.headers();
    let last_event_id = last_event_id(asked)?;
    let position_field = if last_event_id.is_some() { "Last-Event-ID" } else { "after" };
    let Wanted { filter, types, after } = Wanted::read(request.uri(), last_event_id)?;
    let format = Format::wanted(asked);
    let shown = asked.get("x-api-key").map(|key| key.as_bytes().to_vec()).unwrap_or_default();
    let stopping = request.extensions().get().map_or_else(CancellationToken::new, |Connected { stopping, .. }| stopping.clone());
    let following = commands.follow(&filter, types, after).await.map_err(|error| named(error, position_field))?;
    let feed = Feed::new(api, commands, following, format, shown, stopping);
    let frames = stream::unfold(feed, |mut feed| async {
        let frame: Bytes = feed.next().await?;
        Some((Ok::<_, Infallible>(frame), feed))
    });
    let mut response = Body::from_stream(frames).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    // Neither kept nor gathered on the way: an event that waits for company comes too late.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// A refusal of the position names what the client has sent it in.
fn named(error: CommandError, position_field: &str) -> CommandError {
    match error {
        CommandError::Invalid(invalid) if invalid.field == "after" => {
            CommandError::Invalid(Invalid { field: position_field.into(), ..invalid })
        }
        error => error,
    }
}

fn last_event_id(asked: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let wrong = |_| ApiError::from(token::wrong("Last-Event-ID"));
    // A browser that has seen no id sends none, or an empty one.
    asked.get("last-event-id").map(|id| id.to_str().map_err(wrong)).transpose().map(|id| id.filter(|id| !id.is_empty()))
}

#[cfg(test)]
mod tests;
