//! The arguments of scenarios as the native types of this SDK.

use std::time::Duration;

use client::{Callback, CancelMatching, Filter, Instant, Json, NewTimer, PageQuery, RetryPolicy, StatsQuery, TimerRef, Update};
use serde_json::{Map, Value};

use crate::{Fault, mismatch};

pub fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Only the units `d`, `h`, `m`, `s` and `ms`.
pub fn duration(text: &str) -> Result<Duration, Fault> {
    let (mut sum, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |length| digits + length);
        let millis = match &rest[digits..unit] {
            "d" => 86_400_000,
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "ms" => 1,
            other => return mismatch(format!("{other:?} is no unit")),
        };
        let count: u64 = rest[..digits].parse().or_else(|_| mismatch(format!("{text:?} is no duration")))?;
        sum += Duration::from_millis(count * millis);
        rest = &rest[unit..];
    }
    Ok(sum)
}

fn some_duration(value: &Value) -> Result<Option<Duration>, Fault> {
    value.as_str().map(duration).transpose()
}

pub fn instant(value: &Value) -> Result<Instant, Fault> {
    let text = value.as_str().unwrap_or_default();
    chrono::DateTime::parse_from_rfc3339(text).map(|at| at.to_utc()).or_else(|_| mismatch(format!("{text:?} is no instant")))
}

fn some_instant(value: &Value) -> Result<Option<Instant>, Fault> {
    if value.is_null() { Ok(None) } else { instant(value).map(Some) }
}

pub fn callback(given: &Value) -> Result<Callback, Fault> {
    let mut callback = match given["topic"].as_str() {
        Some(topic) => Callback::nats(topic),
        None => Callback::http(given["url"].as_str().unwrap_or_default()),
    };
    for (name, value) in given["headers"].as_object().unwrap_or(&Map::new()) {
        callback = callback.header(name, value.as_str().unwrap_or_default());
    }
    if let Some(payload) = given.get("payload") {
        callback = callback.payload(Json::of(payload)?);
    }
    if let Some(timeout) = some_duration(&given["timeout"])? {
        callback = callback.timeout(timeout);
    }
    if given["protocol"] == "timer" {
        callback = callback.timer_protocol();
    }
    if given["type"] == "nats" {
        callback = given["key"].as_str().map_or(callback.clone(), |key| callback.key(key));
    }
    Ok(if given["jetstream"] == true { callback.jetstream() } else { callback })
}

fn retry_policy(given: &Value) -> Result<RetryPolicy, Fault> {
    Ok(serde_json::from_value(given.clone())?)
}

/// A create. What is an HTTP callback may stand among its own members.
pub fn new_timer(args: &Value) -> Result<NewTimer, Fault> {
    let mut timer = NewTimer::new(callback(args.get("callback").unwrap_or(args))?);
    for (name, value) in args.as_object().unwrap_or(&Map::new()) {
        let text = value.as_str().unwrap_or_default();
        timer = match name.as_str() {
            "in" => timer.after(duration(text)?),
            "at" => timer.at(instant(value)?),
            "namespace" => timer.namespace(text),
            "key" => timer.key(text),
            "id" => timer.id(text),
            "group" => timer.group(text),
            "on_conflict" => timer.on_conflict(text),
            "metadata" => timer.metadata(Json::of(value)?),
            "correlation_id" => timer.correlation_id(text),
            "delivery" => timer.delivery(text),
            "expires_at" => timer.expires(instant(value)?),
            "expires_after" => timer.expires_after(client::duration(duration(text)?)),
            "postpone_max" => timer.postpone_max(client::duration(duration(text)?)),
            "retry_policy" => timer.retry(retry_policy(value)?),
            "on_success" => timer.on_success(callback(value)?),
            "on_failure" => timer.on_failure(callback(value)?),
            "callback" | "url" | "payload" | "headers" | "timeout" | "protocol" | "traceparent" => timer,
            other => return mismatch(format!("a create has no {other}")),
        };
    }
    Ok(timer)
}

/// A change; `null` clears.
pub fn update(set: &Value) -> Result<Update, Fault> {
    let mut update = Update::new();
    for (name, value) in set.as_object().unwrap_or(&Map::new()) {
        let text = value.as_str().unwrap_or_default();
        update = match (name.as_str(), value.is_null()) {
            ("metadata", true) => update.clear("metadata"),
            ("correlation_id", true) => update.clear("correlation_id"),
            ("group", true) => update.clear("group"),
            ("retry_policy", true) => update.clear("retry_policy"),
            ("on_success", true) => update.clear("on_success"),
            ("on_failure", true) => update.clear("on_failure"),
            ("expires_after", true) => update.clear("expires_after"),
            ("in", _) => update.after(duration(text)?),
            ("at", _) => update.at(instant(value)?),
            ("callback", _) => update.callback(&callback(value)?)?,
            ("on_success", _) => update.on_success(&callback(value)?)?,
            ("on_failure", _) => update.on_failure(&callback(value)?)?,
            ("retry_policy", _) => update.retry_policy(&retry_policy(value)?)?,
            ("metadata", _) => update.metadata(Json::of(value)?),
            ("delivery", _) => update.delivery(text),
            ("correlation_id", _) => update.correlation_id(text),
            ("group", _) => update.group(text),
            ("expires_at", _) => update.expires(instant(value)?),
            ("expires_after", _) => update.expires_after(duration(text)?),
            ("postpone_max", _) => update.postpone_max(duration(text)?),
            (other, _) => return mismatch(format!("an update has no {other}")),
        };
    }
    Ok(update)
}

/// The timer that a call is about.
pub fn target(args: &Value) -> TimerRef {
    match args["key"].as_str() {
        Some(key) => TimerRef::key(args["namespace"].as_str().unwrap_or("default"), key),
        None => TimerRef::from(args["id"].as_str().unwrap_or_default()),
    }
}

/// One text, or several of a list with commas between them.
fn joined(value: &Value) -> String {
    match value.as_array() {
        Some(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        None => value.as_str().unwrap_or_default().to_owned(),
    }
}

pub fn filter(args: &Value) -> Result<Filter, Fault> {
    let mut filter = Filter::new();
    for (name, value) in args.as_object().unwrap_or(&Map::new()) {
        filter = match name.as_str() {
            "status" => filter.status(joined(value)),
            "namespace" => filter.namespace(joined(value)),
            "key" => filter.key(joined(value)),
            "key_prefix" => filter.key_prefix(joined(value)),
            "group" => filter.group(joined(value)),
            "correlation_id" => filter.correlation_id(joined(value)),
            "destination" => filter.destination(joined(value)),
            "error" => filter.error(joined(value)),
            "due_from" => filter.due_from(instant(value)?),
            "due_to" => filter.due_to(instant(value)?),
            "created_from" => filter.created_from(instant(value)?),
            "created_to" => filter.created_to(instant(value)?),
            "metadata" => {
                let members = value.as_object().into_iter().flatten();
                members.fold(filter, |filter, (path, value)| filter.metadata(path, value.as_str().unwrap_or_default()))
            }
            _ => filter,
        };
    }
    Ok(filter)
}

pub fn page(args: &Value) -> Result<PageQuery, Fault> {
    let number = |name: &str| args[name].as_u64().and_then(|number| u32::try_from(number).ok());
    Ok(PageQuery {
        filter: filter(args)?,
        sort: text(&args["sort"]),
        order: text(&args["order"]),
        limit: number("limit"),
        offset: number("offset"),
        cursor: text(&args["cursor"]),
    })
}

pub fn stats(args: &Value) -> Result<StatsQuery, Fault> {
    Ok(StatsQuery {
        from: some_instant(&args["from"])?,
        to: some_instant(&args["to"])?,
        step: some_duration(&args["step"])?,
        namespace: text(&args["namespace"]),
    })
}

pub fn cancel_matching(args: &Value) -> Result<CancelMatching, Fault> {
    Ok(CancelMatching {
        namespace: text(&args["namespace"]),
        key_prefix: text(&args["key_prefix"]),
        metadata: args.get("metadata").map(Json::of).transpose()?,
        status: text(&args["status"]),
    })
}
