//! The steps of a scenario, one after the other: see sdks/conformance/README.md.

use std::{collections::HashMap, time::Duration};

use client::dev::{Calls, InboxAnswer, Received};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use crate::{
    Fault,
    calls::{call, watched, wire},
    matching::{compare, matches},
    mismatch,
    rig::{Rig, Special},
};

const WAIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);
const TOOK_MS_MAX: u64 = 60_000;

/// Events that are read as they come, by a task of their own.
struct Watch {
    events: mpsc::UnboundedReceiver<Result<Value, Fault>>,
    task: JoinHandle<()>,
}

pub struct Scenario<'a> {
    rig: &'a Rig,
    values: Map<String, Value>,
    inbox: HashMap<u64, Received>,
    streams: HashMap<String, Watch>,
}

impl Drop for Scenario<'_> {
    fn drop(&mut self) {
        self.streams.values().for_each(|watch| watch.task.abort());
    }
}

impl<'a> Scenario<'a> {
    pub fn new(rig: &'a Rig) -> Self {
        let namespace = format!("c-{:012x}", rand::random::<u64>() >> 16);
        let values =
            Map::from_iter([("namespace".to_owned(), json!(namespace)), ("receiver".to_owned(), json!(rig.dev.receiver("")))]);
        Self { rig, values, inbox: HashMap::new(), streams: HashMap::new() }
    }

    pub async fn run(mut self, steps: &Value) -> Result<(), Fault> {
        self.rig.forget().await?;
        for (number, step) in steps.as_array().into_iter().flatten().enumerate() {
            let step = self.filled(step);
            if let Err(fault) = self.step(&step).await {
                return mismatch(format!("step {}: {fault}", number + 1));
            }
        }
        Ok(())
    }

    /// The same with its variables replaced.
    pub fn filled(&self, value: &Value) -> Value {
        match value {
            Value::Object(members) => members.iter().map(|(name, part)| (name.clone(), self.filled(part))).collect(),
            Value::Array(elements) => elements.iter().map(|part| self.filled(part)).collect(),
            Value::String(text) => self.filled_text(text),
            other => other.clone(),
        }
    }

    fn filled_text(&self, text: &str) -> Value {
        if let Some(path) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|path| !path.contains('}')) {
            return self.looked_up(path);
        }
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, (path, after))) = rest.split_once("${").and_then(|(a, b)| Some((a, b.split_once('}')?))) {
            let value = self.looked_up(path);
            filled += before;
            filled += &value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            rest = after;
        }
        (filled + rest).into()
    }

    fn looked_up(&self, path: &str) -> Value {
        let mut parts = path.split('.');
        let mut found = self.values.get(parts.next().unwrap_or_default()).unwrap_or(&Value::Null);
        for part in parts {
            found = match part.parse::<usize>() {
                Ok(index) if found.is_array() => &found[index],
                _ => &found[part],
            };
        }
        found.clone()
    }

    async fn step(&mut self, step: &Value) -> Result<(), Fault> {
        const KINDS: [&str; 11] =
            ["call", "advance", "answers", "inbox", "verify", "watch", "events", "stop", "faults", "requests", "same"];
        let Some(kind) = KINDS.into_iter().chain(["contains"]).find(|kind| step.get(kind).is_some()) else {
            return mismatch(format!("no such step: {step}"));
        };
        let value = &step[kind];
        let result = match kind {
            "call" => self.call(value.as_str().unwrap_or_default(), step).await?,
            "advance" => wire(self.rig.dev.advance(value["by"].as_str().unwrap_or_default()).await?)?,
            "answers" => {
                self.rig.dev.answer(&serde_json::from_value::<Vec<InboxAnswer>>(value.clone())?).await?;
                Value::Null
            }
            "inbox" => self.calls(value).await?,
            "verify" => self.verify(value)?,
            "watch" => return self.watch(value, step["as"].as_str().unwrap_or_default()).await,
            "events" => self.events(value.as_str().unwrap_or_default(), step).await?,
            "stop" => return self.stop(value.as_str().unwrap_or_default()),
            "faults" => self.rig.faults(value).await.map(|()| Value::Null)?,
            "requests" => self.requests(value, &step["headers"]).await.map(|()| Value::Null)?,
            "same" => compare(&value[1], &value[0], "result").map(|()| Value::Null)?,
            _ => match (value[0].as_str(), value[1].as_str()) {
                (Some(text), Some(part)) if text.contains(part) => Value::Null,
                _ => return mismatch(format!("{} is not in {}", value[1], value[0])),
            },
        };
        if let Some(name) = step["as"].as_str() {
            self.values.insert(name.to_owned(), result.clone());
        }
        step.get("expect").map_or(Ok(()), |expected| compare(expected, &result, "result"))
    }

    async fn call(&self, name: &str, step: &Value) -> Result<Value, Fault> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let client = self.rig.client(Special {
            api_key: text(&step["api_key"]),
            timeout: step["timeout_ms"].as_u64().map(Duration::from_millis),
            traceparent: text(&step["args"]["traceparent"]),
            ..Special::default()
        })?;
        let began = Instant::now();
        let outcome = call(&client, name, &step["args"]).await;
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (least, most) = (step["took_ms_min"].as_u64().unwrap_or(0), step["took_ms_max"].as_u64().unwrap_or(TOOK_MS_MAX));
        if !(least..=most).contains(&took) {
            return mismatch(format!("{name} took {took} ms"));
        }
        match (outcome, step.get("error")) {
            (Ok(_), Some(_)) => mismatch(format!("{name} succeeded")),
            (Err(Fault::Client(error)), Some(expected)) => {
                compare(expected, &shown(&error), "error")?;
                Ok(Value::Null)
            }
            (outcome, _) => outcome,
        }
    }

    async fn calls(&mut self, wanted: &Value) -> Result<Value, Fault> {
        let which = Calls::at(wanted["path"].as_str().unwrap_or_default());
        let count = wanted["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        let dev = &self.rig.dev;
        let calls = if count > 0 { dev.wait_for(&which, count).await? } else { dev.calls(&which).await? };
        if calls.len() != count {
            return mismatch(format!("{} calls, not {count}", calls.len()));
        }
        self.inbox.extend(calls.iter().map(|call| (call.seq, call.clone())));
        wire(calls)
    }

    fn verify(&self, call: &Value) -> Result<Value, Fault> {
        let Some(call) = call["seq"].as_u64().and_then(|seq| self.inbox.get(&seq)) else {
            return mismatch("there is no such call in the inbox");
        };
        self.rig.dev.verify(call).map(|call| said(&call)).or_else(|doubt| mismatch(doubt.to_string()))
    }

    async fn watch(&mut self, args: &Value, name: &str) -> Result<(), Fault> {
        let before = self.streams_answered().await?;
        let mut stream = Box::pin(self.rig.client(Special::default())?.watch(watched(args)?));
        let (send, events) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Some(event) = stream.next().await {
                if send.send(event.map_err(Fault::from).and_then(wire)).is_err() {
                    break;
                }
            }
        });
        self.streams.insert(name.to_owned(), Watch { events, task });
        let until = Instant::now() + WAIT;
        while self.streams_answered().await? == before {
            if Instant::now() > until {
                return mismatch("the stream did not begin");
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    async fn streams_answered(&self) -> Result<usize, Fault> {
        let seen = self.rig.requests().await?;
        Ok(seen.iter().filter(|request| request["path"] == "/events" && request["answered"] == true).count())
    }

    async fn events(&mut self, name: &str, step: &Value) -> Result<Value, Fault> {
        let Some(watch) = self.streams.get_mut(name) else { return mismatch(format!("there is no stream {name}")) };
        let count = step["expect"].as_array().map_or(usize::MAX, Vec::len);
        let mut read = Vec::new();
        while read.len() < count {
            let Ok(Some(event)) = tokio::time::timeout(WAIT, watch.events.recv()).await else { return mismatch("no event") };
            read.push(event?);
            if step.get("until").is_some_and(|until| read.last().is_some_and(|event| matches(until, event))) {
                break;
            }
        }
        Ok(read.into())
    }

    fn stop(&mut self, name: &str) -> Result<(), Fault> {
        match self.streams.remove(name) {
            Some(watch) => watch.task.abort(),
            None => return mismatch(format!("there is no stream {name}")),
        }
        Ok(())
    }

    async fn requests(&self, wanted: &Value, headers: &Value) -> Result<(), Fault> {
        let is_wanted = |request: &Value| request["method"] == wanted["method"] && request["path"] == wanted["path"];
        let seen: Vec<_> = self.rig.requests().await?.into_iter().filter(is_wanted).collect();
        if Some(seen.len() as u64) != wanted["count"].as_u64() {
            return mismatch(format!("{} requests, not {}", seen.len(), wanted["count"]));
        }
        match (headers.is_null(), seen.last()) {
            (false, Some(last)) => compare(headers, &last["headers"], "headers"),
            _ => Ok(()),
        }
    }
}

/// An error with the names of the API.
pub fn shown(error: &client::Error) -> Value {
    let refusal = error.refusal();
    json!({
        "kind": error.kind(),
        "status": refusal.map(|refusal| refusal.status),
        "code": refusal.and_then(|refusal| refusal.code),
        "message": error.to_string(),
        "field": refusal.and_then(client::Refusal::field),
        "request_id": refusal.and_then(|refusal| refusal.request_id.clone()),
        "retry_after_ms": refusal.and_then(|refusal| refusal.retry_after).map(|wait| wait.as_millis() as u64),
    })
}

/// What a call says, with the names of the API.
pub fn said(call: &client::webhook::Call) -> Value {
    json!({
        "id": call.id,
        "timer_id": call.timer_id,
        "namespace": call.namespace,
        "attempt": call.attempt,
        "scheduled_at": call.scheduled_at.to_rfc3339(),
        "sent_at": call.sent_at.to_rfc3339(),
        "lateness_ms": call.lateness().as_millis() as u64,
        "correlation_id": call.correlation_id,
        "traceparent": call.traceparent,
    })
}
