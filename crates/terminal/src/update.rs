//! `timer update`.

use clap::Args;
use client::Json;
use domain::{Span, Timestamp};
use serde_json::{Map, Value, json};

use crate::{ConnectionOptions, Context, Failure, connection::span, output::OutputOptions, read::OneTimer, request};

#[derive(Debug, Clone, Args)]
pub struct UpdateOptions {
    #[command(flatten)]
    pub timer: OneTimer,
    /// Due so long from now
    #[arg(long = "in", value_name = "DURATION", value_parser = span, conflicts_with = "at")]
    pub delay: Option<Span>,
    /// Due at this time, in RFC 3339
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    pub at: Option<Timestamp>,
    /// Another payload: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub payload: Option<String>,
    /// Other metadata: a member; give it again for each further one
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = request::pair)]
    pub metadata: Vec<(String, String)>,
    /// Any members of the request, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub set: Option<String>,
    /// Only if the timer has this revision
    #[arg(long, value_name = "REVISION")]
    pub if_revision: Option<u32>,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

pub async fn run(options: &UpdateOptions, context: &Context) -> Result<(), Failure> {
    let failed = |error: client::Error| Failure::from(error).in_json(options.output.is_json());
    let client = options.connection.client(context)?;
    let reference = options.timer.reference();
    let mut fields: Map<String, Value> = match &options.set {
        Some(text) => {
            serde_json::from_str(text).map_err(|error| Failure::usage(format!("--set is not a JSON object: {error}")))?
        }
        None => Map::new(),
    };
    if let Some(delay) = options.delay {
        fields.insert("delay".to_owned(), delay.to_string().into());
    }
    if let Some(at) = options.at {
        fields.insert("execute_at".to_owned(), at.to_string().into());
    }
    if !options.metadata.is_empty() {
        fields.insert("metadata".to_owned(), request::object(&options.metadata).into());
    }
    let mut body = Json::of(&fields)?.to_string();
    let mut if_revision = options.if_revision;
    if let Some(text) = &options.payload {
        // A callback is always whole: the one that is there, with the other payload, if it has not been changed meanwhile.
        let detail = client.timers().get(&reference).await.map_err(failed)?;
        if_revision = if_revision.or(Some(detail.timer.revision));
        let callback = with_payload(detail.timer.callback_type, &detail.more.callback_config, &request::payload(text)?)?;
        let rest = body.trim_start_matches('{');
        let comma = if fields.is_empty() { "" } else { "," };
        body = format!("{{\"callback\":{callback}{comma}{rest}");
    }
    let timers = if_revision.map_or_else(|| client.timers(), |revision| client.timers().if_revision(revision));
    let changed = timers.update_raw(&reference, &Json::text(body)?).await.map_err(failed)?;
    options.output.print_changed(context, &changed)
}

/// The same callback with another payload, which stays exactly as it is.
fn with_payload(kind: String, config: &Json, payload: &Json) -> Result<String, Failure> {
    let mut members: Map<String, Value> = config.parse()?;
    members.remove("payload");
    members.insert("type".to_owned(), json!(kind));
    let rest = Value::from(members).to_string();
    Ok(format!("{{\"payload\":{payload},{}", rest.trim_start_matches('{')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_replaced_to_the_byte() {
        let config = Json::text(r#"{"url":"http://a","payload":1,"timeout":"30s"}"#).unwrap();
        let callback = with_payload("http".to_owned(), &config, &Json::text("{\"n\": 1.10}").unwrap()).unwrap();
        assert!(callback.starts_with("{\"payload\":{\"n\": 1.10},"), "{callback}");
        let read: Value = serde_json::from_str(&callback).unwrap();
        assert_eq!(read, json!({"payload": {"n": 1.10}, "type": "http", "url": "http://a", "timeout": "30s"}));
    }
}
