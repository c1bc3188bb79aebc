//! One function for each file of sdks/conformance/vectors.

use std::time::Duration;

use client::{
    Instant, Json, NewTimer, Update,
    dev::Calls,
    webhook::{self, Call, Secret},
};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::{
    Fault, arguments,
    calls::call,
    matching::compare,
    mismatch,
    rig::{Rig, Special},
    scenario::{Scenario, said, shown},
};

pub async fn run(rig: &Rig, name: &str, data: &Value) -> Result<(), Fault> {
    match name {
        "calls" => calls(data),
        "durations" => durations(data),
        "errors" => errors(rig, data).await,
        "exact_json" => exact_json(rig, data).await,
        "instants" => instants(data),
        "protocol" => protocol(data),
        "retries" => retries(rig, data).await,
        "retry_after" => retry_after(data),
        "signatures" => signatures(data),
        other => mismatch(format!("no such file: {other}")),
    }
}

fn each<'a>(data: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    data[name].as_array().into_iter().flatten()
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_default()
}

fn same(actual: impl Into<Value>, expected: &Value, of: &Value) -> Result<(), Fault> {
    let actual = actual.into();
    if actual == *expected { Ok(()) } else { mismatch(format!("{of}: {actual}, not {expected}")) }
}

fn headers(case: &Value) -> HeaderMap {
    let given = case["headers"].as_object().into_iter().flatten();
    let read = |(name, value): (&String, &Value)| {
        let value = HeaderValue::from_bytes(value.as_str()?.as_bytes()).ok()?;
        Some((name.parse::<HeaderName>().ok()?, value))
    };
    given.filter_map(read).collect()
}

fn at(seconds: &Value) -> Result<Instant, Fault> {
    let at = seconds.as_i64().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    at.map_or_else(|| mismatch(format!("{seconds} is no time")), Ok)
}

fn micros(micros: &Value) -> Result<Instant, Fault> {
    let at = micros.as_i64().and_then(chrono::DateTime::from_timestamp_micros);
    at.map_or_else(|| mismatch(format!("{micros} is no time")), Ok)
}

fn signatures(data: &Value) -> Result<(), Fault> {
    let secret = |text: &str| Secret::parse(text).or_else(|doubt| mismatch(doubt.to_string()));
    for case in each(data, "sign") {
        let timestamp = case["timestamp"].as_i64().unwrap_or_default();
        let signature = secret(text(case, "secret"))?.sign(text(case, "id"), timestamp, text(case, "body").as_bytes());
        same(signature, &case["signature"], case)?;
    }
    for case in each(data, "verify") {
        let secrets =
            each(case, "secrets").map(|text| secret(text.as_str().unwrap_or_default())).collect::<Result<Vec<_>, _>>()?;
        let tolerance = Duration::from_secs(case["tolerance_seconds"].as_u64().unwrap_or_default());
        let outcome = webhook::check(&headers(case), text(case, "body").as_bytes(), &secrets, tolerance, at(&case["now"])?);
        same(outcome.is_ok(), &case["valid"], case)?;
    }
    for bad in each(data, "bad_secrets") {
        same(Secret::parse(bad.as_str().unwrap_or_default()).is_err(), &json!(true), bad)?;
    }
    Ok(())
}

/// A negative duration cannot be written down in Rust.
fn durations(data: &Value) -> Result<(), Fault> {
    for case in each(data, "format") {
        let duration = Duration::from_micros(case["us"].as_u64().unwrap_or_default());
        same(client::duration(duration), &case["text"], case)?;
    }
    Ok(())
}

fn instants(data: &Value) -> Result<(), Fault> {
    for case in each(data, "parse") {
        let event = json!({"type": "created", "event_id": "e", "at": case["text"]});
        let event: client::Event = serde_json::from_value(event)?;
        same(event.at.map(|at| at.timestamp_micros()), &case["us"], case)?;
    }
    for case in each(data, "format") {
        let body = Update::new().at(micros(&case["us"])?).body();
        let sent: Value = body.parse()?;
        same(arguments::instant(&sent["execute_at"])?.timestamp_micros(), &case["us"], case)?;
    }
    Ok(())
}

fn retry_after(data: &Value) -> Result<(), Fault> {
    for case in each(data, "cases") {
        let wait = client::retry_after(text(case, "value"), at(&case["now"])?);
        same(wait.map(|wait| wait.as_millis() as u64), &case["ms"], case)?;
    }
    Ok(())
}

async fn errors(rig: &Rig, data: &Value) -> Result<(), Fault> {
    let client = rig.client(Special { retries: Some(0), ..Special::default() })?;
    for case in each(data, "cases") {
        let answer = json!({"do": "answer", "status": case["status"], "headers": case["headers"], "body": case["body"]});
        rig.faults(&json!([answer])).await?;
        let Err(error) = client.whoami().await else { return mismatch(format!("{case} was taken")) };
        let mut expected = case["error"].clone();
        if expected["message"].is_null() {
            expected["message"] = json!("$any");
        }
        compare(&expected, &shown(&error), &case["status"].to_string())?;
    }
    Ok(())
}

async fn exact_json(rig: &Rig, data: &Value) -> Result<(), Fault> {
    let client = rig.client(Special::default())?;
    for given in each(data, "texts") {
        let json = Json::text(given.as_str().unwrap_or_default())?;
        let new = NewTimer::http(rig.dev.receiver("/exact")).delay("1h").payload(json.clone()).metadata(json.clone());
        let timer = client.timers().create(&new).await?;
        let kept = client.timers().get(&timer.id).await?;
        for part in [kept.payload(), kept.more.metadata.clone()] {
            same(part.unwrap_or_else(Json::null).as_str(), given, given)?;
        }
        client.timers().fire(&timer.id).await?;
        let calls = rig.dev.wait_for(&Calls { path: Some("/exact".to_owned()), ..Calls::of(&timer.id) }, 1).await?;
        same(calls[0].body.as_str(), given, given)?;
    }
    Ok(())
}

fn calls(data: &Value) -> Result<(), Fault> {
    for case in each(data, "cases") {
        let call = Call::read(&headers(case)).or_else(|doubt| mismatch(doubt.to_string()))?;
        compare(&case["call"], &said(&call), text(case, "name"))?;
    }
    Ok(())
}

fn protocol(data: &Value) -> Result<(), Fault> {
    for case in each(data, "cases") {
        let answer = match text(case, "answer") {
            "done" => webhook::done(case.get("next").map(arguments::instant).transpose()?),
            "again" => webhook::again(arguments::instant(&case["at"])?),
            "failed" => webhook::failed(),
            _ => webhook::retry_after(Duration::from_secs(case["seconds"].as_u64().unwrap_or_default())),
        };
        let headers: serde_json::Map<_, _> =
            answer.headers.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let body: Value = if answer.body.is_empty() { Value::Null } else { serde_json::from_str(&answer.body)? };
        let made = json!({"status": answer.status, "headers": headers, "body": body});
        let wanted = json!({"status": case["status"], "headers": case["headers"], "body": case["body"]});
        compare(&wanted, &made, text(case, "answer"))?;
    }
    Ok(())
}

async fn retries(rig: &Rig, data: &Value) -> Result<(), Fault> {
    let client = rig.client(Special::default())?;
    for case in each(data, "cases") {
        let fault = match &case["outcome"] {
            Value::String(outcome) if outcome == "unreachable" => json!({"do": "drop"}),
            Value::String(_) => json!({"do": "cut"}),
            status => json!({"do": "answer", "status": status}),
        };
        rig.forget().await?;
        rig.faults(&json!([fault])).await?;
        let args = Scenario::new(rig).filled(&case["args"]);
        match call(&client, text(case, "call"), &args).await {
            Ok(_) | Err(Fault::Client(_)) => {}
            Err(other) => return Err(other),
        }
        same(rig.requests().await?.len(), &json!(if case["retried"] == true { 2 } else { 1 }), case)?;
    }
    Ok(())
}
