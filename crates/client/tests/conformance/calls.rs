//! The calls of sdks/conformance/operations.json as calls of this SDK, and its results in the shape of the API.

use client::{Bulk, Bulked, Client, EventQuery, TimerDetail};
use futures_util::TryStreamExt;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Fault, arguments, mismatch};

/// A result in the shape and with the names of the API.
pub fn wire(result: impl Serialize) -> Result<Value, Fault> {
    Ok(serde_json::to_value(result)?)
}

fn detail(timer: &TimerDetail) -> Result<Value, Fault> {
    let mut shown = wire(&timer.timer)?;
    if let (Value::Object(shown), Value::Object(more)) = (&mut shown, wire(&timer.more)?) {
        shown.extend(more);
    }
    Ok(shown)
}

pub async fn call(client: &Client, name: &str, args: &Value) -> Result<Value, Fault> {
    let text = |name: &str| args[name].as_str().unwrap_or_default();
    match name {
        "operations.list" => Ok(json!({"operations": wire(client.operations().list().await?)?})),
        "operations.get" => wire(client.operations().get(text("id")).await?),
        "operations.stop" => wire(client.operations().stop(text("id")).await?),
        "groups.get" => wire(client.groups().get(text("namespace"), text("group")).await?),
        "groups.cancel" => wire(client.groups().cancel(text("namespace"), text("group")).await?),
        "keys.create" => {
            let namespaces: Option<Vec<&str>> =
                args["namespaces"].as_array().map(|names| names.iter().filter_map(Value::as_str).collect());
            wire(client.keys().create(text("name"), namespaces.as_deref(), text("rights")).await?)
        }
        "keys.list" => Ok(json!({"keys": wire(client.keys().list().await?)?})),
        "keys.revoke" => Ok(client.keys().revoke(text("id")).await.map(|()| Value::Null)?),
        "stats.due" => wire(client.stats().due(&arguments::stats(args)?).await?),
        "stats.fired" => wire(client.stats().fired(&arguments::stats(args)?).await?),
        "destinations" => wire(client.destinations(args["namespace"].as_str()).await?),
        "namespaces" => wire(client.namespaces().await?),
        "cluster" => wire(client.cluster().await?),
        "whoami" => wire(client.whoami().await?),
        "health" => wire(client.health().await?),
        "ping" => Ok(client.ping().await.map(|()| Value::Null)?),
        of_timers => timers(client, of_timers, args).await,
    }
}

async fn timers(client: &Client, name: &str, args: &Value) -> Result<Value, Fault> {
    let revision = args["revision"].as_u64().and_then(|revision| u32::try_from(revision).ok());
    let timers = revision.map_or_else(|| client.timers(), |revision| client.timers().if_revision(revision));
    let target = arguments::target(args);
    match name {
        "timers.create" => wire(timers.create(&arguments::new_timer(args)?).await?),
        "timers.create_many" => {
            let given = args["timers"].as_array().into_iter().flatten();
            let new = given.map(arguments::new_timer).collect::<Result<Vec<_>, _>>()?;
            Ok(json!({"results": wire(timers.create_many(&new).await?)?}))
        }
        "timers.get" => detail(&timers.get(target).await?),
        "timers.list" => wire(timers.list(arguments::page(args)?).try_collect::<Vec<_>>().await?),
        "timers.page" => wire(timers.page(&arguments::page(args)?).await?),
        "timers.count" => wire(timers.count(&arguments::filter(args)?).await?),
        "timers.export" => {
            let parts = timers.export(&arguments::filter(args)?, args["format"].as_str().unwrap_or_default()).await?;
            let text: Vec<u8> = parts.try_fold(Vec::new(), async |text, part| Ok([text, part.to_vec()].concat())).await?;
            wire(String::from_utf8_lossy(&text))
        }
        "timers.update" => wire(timers.update(target, &arguments::update(&args["set"])?).await?),
        "timers.cancel" => wire(timers.cancel(target).await?),
        "timers.fire" => wire(timers.fire(target).await?),
        "timers.retry" => wire(timers.retry(target).await?),
        "timers.ping" => {
            let delay = args["delay"].as_str().map(arguments::duration).transpose()?;
            wire(timers.ping(target, delay).await?)
        }
        "timers.pause" => wire(timers.pause(target, args["note"].as_str()).await?),
        "timers.resume" => wire(timers.resume(target, args["missed"].as_str()).await?),
        "timers.attempts" => Ok(json!({"attempts": wire(timers.attempts(target).await?)?})),
        "timers.cancel_matching" => {
            let which = arguments::cancel_matching(args)?;
            wire(timers.cancel_matching(&which, args["expected_max"].as_u64().unwrap_or_default()).await?)
        }
        "timers.bulk" => bulk(client, args).await,
        other => mismatch(format!("no such call: {other}")),
    }
}

async fn bulk(client: &Client, args: &Value) -> Result<Value, Fault> {
    let set = args.get("set").map(|set| match set.get("at") {
        Some(at) => json!({"execute_at": at}),
        None => set.clone(),
    });
    let action = args["action"].as_str().unwrap_or_default().to_owned();
    let bulk = Bulk { action, filter: arguments::filter(&args["filter"])?, set };
    if args["dry_run"] == true {
        return wire(client.timers().bulk_preview(&bulk).await?);
    }
    match client.timers().bulk(&bulk, args["expected_max"].as_u64().unwrap_or_default()).await? {
        Bulked::Done { changed, skipped } => Ok(json!({"changed": changed, "skipped": skipped})),
        Bulked::Started(operation) => Ok(json!({"operation": wire(operation)?})),
    }
}

/// `timers.watch`.
pub fn watched(args: &Value) -> Result<EventQuery, Fault> {
    let types = args["types"].as_array().map(|types| types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","));
    Ok(EventQuery { filter: arguments::filter(args)?, types, after: arguments::text(&args["after"]) })
}
