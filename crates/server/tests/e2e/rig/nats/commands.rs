//! The messages of the command consumer, as its users write and read them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Bus, Message, Unacknowledged, Witness};
use crate::rig::{instant, micros, now};

pub const COMMANDS: &str = "TIMER_COMMANDS";
pub const EVENTS: &str = "TIMER_EVENTS";
pub const CONSUMER: &str = "timer";
pub const COMMAND_SUBJECT: &str = "timer.commands.schedule";
pub const DEAD_SUBJECT: &str = "timer.commands.dead";

/// A command in its envelope.
pub fn schedule_timer(tenant: &str, call: &str, due_at: i64) -> Value {
    json!({
        "id": format!("command-{call}"),
        "type": "ScheduleTimer",
        "tenantId": tenant,
        "timestampMs": now() / 1000,
        "payload": {"tenantId": tenant, "serviceCallId": call, "dueAt": instant(due_at)},
    })
}

/// `DueTimeReached`, and how it came.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: String,
    pub tenant: String,
    pub call: String,
    pub correlation: Option<String>,
    pub reached_at: i64,
    /// When the stream took it.
    pub at: i64,
    /// `Nats-Msg-Id`.
    pub message_id: String,
}

impl Event {
    /// Fails the test when anything in it is not as promised.
    pub fn read(message: &Message) -> Self {
        let text = message.text();
        let envelope: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let string =
            |value: &Value| value.as_str().unwrap_or_else(|| panic!("not a string where one belongs: {text}")).to_owned();
        let fields = |value: &Value| {
            let mut names: Vec<String> =
                value.as_object().unwrap_or_else(|| panic!("no object: {text}")).keys().cloned().collect();
            names.retain(|name| name != "correlationId");
            names.sort_unstable();
            names
        };
        assert_eq!(fields(&envelope), ["id", "payload", "tenantId", "timestampMs", "type"], "{text}");
        assert_eq!(fields(&envelope["payload"]), ["reachedAt", "serviceCallId", "tenantId"], "{text}");
        assert_eq!(envelope["type"], "DueTimeReached", "{text}");
        assert_eq!(envelope["tenantId"], envelope["payload"]["tenantId"], "{text}");
        let event = Self {
            id: string(&envelope["id"]),
            tenant: string(&envelope["tenantId"]),
            call: string(&envelope["payload"]["serviceCallId"]),
            correlation: envelope.get("correlationId").map(string),
            reached_at: micros(&string(&envelope["payload"]["reachedAt"])),
            at: message.at,
            message_id: message.header("Nats-Msg-Id").to_owned(),
        };
        assert_eq!(message.subject, format!("timer.events.due.{}", event.tenant), "{text}");
        assert_eq!(envelope["timestampMs"].as_i64(), Some(event.reached_at.div_euclid(1000)), "{text}");
        assert!(!event.id.is_empty() && !event.message_id.is_empty(), "{message:?}");
        event
    }
}

impl Bus {
    /// A connection to a server whose streams the service has made.
    pub async fn to_commands(url: &str) -> Self {
        let bus = Self::connect(url).await;
        bus.wait_for_stream(COMMANDS).await;
        bus.wait_for_stream(EVENTS).await;
        bus
    }

    /// Sends a command; the broker has it when this is `Ok`.
    pub async fn command(&self, command: &Value) -> Result<u64, Unacknowledged> {
        self.publish(COMMAND_SUBJECT, command.to_string()).await
    }

    /// Sends a command that must be taken.
    /// Sends a command from within a trace.
    pub async fn command_in_trace(&self, command: &Value, parent: &str, state: &str) {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("traceparent", parent);
        headers.insert("tracestate", state);
        let published = self.jetstream.publish_with_headers(COMMAND_SUBJECT, headers, command.to_string().into()).await;
        published.expect("a connection").await.expect("an acknowledgement");
    }

    pub async fn schedule(&self, tenant: &str, call: &str, due_at: i64) -> u64 {
        self.command(&schedule_timer(tenant, call, due_at)).await.expect("an acknowledgement")
    }

    pub fn events(&self) -> Witness {
        self.witness(EVENTS)
    }
}

impl Witness {
    /// Waits for so many events; all of them.
    pub async fn wait_for_events(&mut self, events: usize, limit: Duration) -> Vec<Event> {
        self.wait_for(events, limit).await.iter().map(Event::read).collect()
    }

    /// Waits for the event of this call; all events up to then.
    pub async fn wait_for_event_of(&mut self, call: &str, limit: Duration) -> Vec<Event> {
        let is_there = |messages: &[Message]| messages.iter().any(|message| Event::read(message).call == call);
        self.wait_until(&format!("the event of {call}"), limit, is_there).await.iter().map(Event::read).collect()
    }
}
