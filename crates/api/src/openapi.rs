//! `GET /openapi.json`: the description of this API, made from the code that answers.

use axum::{extract::State, response::Response};
use http::HeaderMap;
use serde_json::{Value, json};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        Content, ContentBuilder, HeaderBuilder, ObjectBuilder, Ref, RefOr, ResponseBuilder, Type,
        path::Operation,
        security::{ApiKey, ApiKeyValue, SecurityScheme},
    },
};

use crate::{
    Api, BasePath, attempts, auth, batch, bulk, by_key, cancel, cancel_matching, cluster, count, create, destinations,
    dialect::ApiDialect, docs, events, export, fire, get, groups, health, keys, list, metrics, namespaces, operations, pause,
    ping, ping_timer, retry, stats, update, v1, whoami,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Timer Platform",
        description = "A durable timer service: register *call this at that time*; at that time, within milliseconds, the call is made, and the record of what happened is kept."
    ),
    paths(
        create::create, list::list, count::count, export::csv, export::json, export::ndjson, get::get, update::update, cancel::cancel,
        fire::fire, retry::retry, ping_timer::ping_timer, pause::pause, pause::resume, attempts::attempts, batch::batch,
        cancel_matching::cancel_matching, bulk::bulk, operations::list, operations::get, operations::stop,
        by_key::read, by_key::change, by_key::cancel_it, by_key::fire_it, by_key::retry_it, by_key::pause_it, by_key::resume_it,
        by_key::ping_it, by_key::list_attempts,
        groups::count, groups::cancel,
        v1::create::create, v1::get::get, v1::update::update, v1::delete::delete,
        v1::create::create_or_replace, v1::get::get_selected, v1::update::update_selected, v1::delete::delete_selected,
        events::events,
        keys::create::create, keys::list::list, keys::revoke::revoke,
        stats::due::due, stats::fired::fired, destinations::destinations, namespaces::namespaces,
        cluster::cluster, whoami::whoami, health::health, ping::ping, metrics::metrics, describe, docs::docs
    ),
    components(schemas(crate::envelope::ErrorEnvelope, crate::schema::Sort, crate::schema::Order, crate::schema::IfMatch, crate::schema::TimerKey)),
    tags(
        (name = "timers", description = "Register, read, change, fire, retry, pause and cancel timers, one by one or many at once."),
        (name = "operations", description = "Bulk changes of more than 1,000 timers, which go on in the background."),
        (name = "v1", description = "The same under ids of your own, in camelCase and with errors in a format of their own. Its timers speak the `timer` protocol."),
        (name = "keys", description = "Issued keys, bound to namespaces. Only the administrator's own key, the one that the service was started with, opens these."),
        (name = "stats", description = "What is due when, what was fired when and how late, how receivers are, and what namespaces have. A key sees what it opens."),
        (name = "service", description = "How the service is, and how it is used. Open without a key, except `/cluster` and `/whoami`."),
    ),
    modifiers(&Common),
)]
struct Description;

/// What holds for every operation.
struct Common;

impl Modify for Common {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let key = ApiKeyValue::with_description(
            "X-API-Key",
            "The key that the service was started with, or one that was issued for you.",
        );
        components.add_security_scheme("ApiKey", SecurityScheme::ApiKey(ApiKey::Header(key)));
        for (path, item) in &mut openapi.paths.paths {
            let is_open = auth::OPEN_PATHS.contains(&path.as_str());
            let error = match ApiDialect::of(path) {
                ApiDialect::Native => "ErrorEnvelope",
                ApiDialect::V1 => "V1Error",
            };
            for operation in
                [&mut item.get, &mut item.post, &mut item.put, &mut item.delete].into_iter().filter_map(Option::as_mut)
            {
                add_common_errors(operation, is_open, error);
                add_etags(operation);
            }
        }
    }
}

fn add_common_errors(operation: &mut Operation, is_open: bool, error: &str) {
    let mut errors = vec![
        ("414", "The URI is longer than 8 KiB."),
        ("431", "There are more than 64 headers, or they are larger than 16 KiB together."),
    ];
    if !is_open {
        errors.extend([
            ("401", "`unauthorized`: the `X-API-Key` header is missing or wrong."),
            ("403", "The key does not go that far: it may only read, or does not open the namespace that is named."),
            ("429", "More requests than one key may make, a second bulk request or a fifth operation of one key at the same time, or too many wrong keys from one address; `Retry-After` says in how many seconds the next may come."),
            ("500", "Something unexpected; the log has it under the `x-request-id` of the answer."),
            ("503", "The database is away, the outcome could not be read back, or too many large bodies came at the same time; the message says which."),
        ]);
    }
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        if parameter.name != IF_MATCH {
            continue;
        }
        // It may be left out; a header is never `null`.
        parameter.schema = Some(Ref::from_schema_name("IfMatch").into());
        errors.push((
            "412",
            "The timer has another revision than `If-Match` says, and nothing was changed: `timer has revision 8, not 7`.",
        ));
    }
    for (status, description) in errors {
        let body = ContentBuilder::new().schema(Some(Ref::from_schema_name(error))).build();
        let response = ResponseBuilder::new().description(description).content("application/json", body).build();
        operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
    }
}

const IF_MATCH: &str = "If-Match";

/// Answers with one timer carry its revision.
fn add_etags(operation: &mut Operation) {
    let revision = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).examples([json!("\"1\"")])))
        .description(Some("The revision of the timer, in double quotes: see `If-Match`."))
        .build();
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        let tells_of_one = |content: &RefOr<Content>| match content {
            RefOr::T(Content { schema: Some(RefOr::Ref(schema)), .. }) => {
                ONE_TIMER.iter().any(|name| schema.ref_location.ends_with(name))
            }
            _ => false,
        };
        if response.content.values().any(tells_of_one) {
            response.headers.insert("ETag".to_owned(), RefOr::T(revision.clone()));
        }
    }
}

/// The names of the schemas of answers with one timer.
const ONE_TIMER: [&str; 2] = ["/Envelope_Timer", "/Envelope_TimerDetail"];

/// The whole document.
pub(crate) fn document() -> Value {
    let mut document = serde_json::to_value(Description::openapi()).unwrap_or_default();
    document["servers"] = json!([{"url": "/"}]);
    // JSON Schema can say it, utoipa cannot.
    for form in ["CreateTimerAt", "CreateTimerAfter"] {
        document["components"]["schemas"][form]["dependentRequired"] = json!({"on_conflict": ["key"]});
    }
    document["components"]["schemas"]["CreateCountdown"]["anyOf"] =
        json!(["hours", "minutes", "seconds"].map(|part| json!({"required": [part], "properties": {part: {"minimum": 1}}})));
    let two_names = json!({"required": ["id", "key"]});
    let two_expiries = json!({"required": ["expires_at", "expires_after"]});
    // There is no delay by which such a timer could be postponed.
    let postponed = json!({"required": ["on_conflict"], "properties": {"on_conflict": {"const": "postpone"}}});
    for (form, refused) in [
        ("CreateTimerAt", json!({"anyOf": [two_names, two_expiries, postponed]})),
        ("CreateTimerAfter", json!({"anyOf": [two_names, two_expiries]})),
        ("UpdateTimer", json!({"anyOf": [two_expiries, {"required": ["execute_at", "delay"]}]})),
    ] {
        document["components"]["schemas"][form]["not"] = refused;
    }
    document["components"]["schemas"]["CancelTimers"]["anyOf"] =
        cancel_matching::conditions().into_iter().map(|condition| json!({"required": [condition]})).collect();
    let two_groups = json!({"required": ["namespace", "groupId"]});
    let two_timeouts = json!({"required": ["callbackTimeout", "callbackTimeoutSeconds"]});
    for (form, refused) in [
        ("V1CreateTimer", json!({"anyOf": [two_groups, two_timeouts]})),
        ("V1UpdateSelectedTimer", json!({"anyOf": [two_groups, two_timeouts]})),
        ("V1TimerSelection", two_groups.clone()),
        ("V1UpdateTimer", two_timeouts.clone()),
    ] {
        document["components"]["schemas"][form]["not"] = refused;
    }
    document
}

/// The same for a service under this path.
pub(crate) fn document_under(base_path: &BasePath) -> Value {
    let mut document = document();
    if *base_path != BasePath::default() {
        document["servers"] = json!([{"url": base_path.as_str()}]);
    }
    document
}

/// OpenAPI
///
/// This description, as OpenAPI 3.1.
#[utoipa::path(
    get, path = "/openapi.json", tag = "service", operation_id = "openapi",
    responses((status = 200, description = "The document.", body = domain::AnyJson, content_type = "application/json"))
)]
pub(crate) async fn describe(State(api): State<Api>, asked: HeaderMap) -> Response {
    api.pages.openapi.answer(&asked, "application/json")
}

#[cfg(test)]
mod tests;
