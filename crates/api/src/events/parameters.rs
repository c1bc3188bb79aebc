use std::borrow::Cow;

use commands::{EventType, EventTypes, Filter};
use domain::{CorrelationId, Group, Invalid, Key, MetadataPath, Namespace, Status, Timestamp, quoted};
use http::Uri;
use url::form_urlencoded;
use utoipa::IntoParams;

use super::token;
/// The parameters of a stream, beside those of the filter: for the OpenAPI document.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "it is only described, never made")]
pub(super) struct Parameters {
    /// Only timers in this status, or in one of several, separated by commas.
    #[param(value_type = Option<domain::Status>)]
    status: Option<String>,
    /// Only timers of this namespace, or of one of several, separated by commas.
    #[param(min_length = 1, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    namespace: Option<String>,
    /// Only events of these types, separated by commas; all of them unless given.
    #[param(example = "created,finished")]
    types: Option<String>,
    /// The id of an event: only what happened after it.
    after: Option<String>,
}

/// What is to be followed, and from where on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub filter: Filter,
    pub types: EventTypes,
    pub after: Option<Timestamp>,
}

impl Wanted {
    pub(super) fn read(uri: &Uri, last_event_id: Option<&str>) -> Result<Self, Invalid> {
        let mut wanted = Self { filter: Filter::default(), types: EventTypes::ALL, after: None };
        let mut seen: Vec<Cow<'_, str>> = Vec::new();
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            // What is no UTF-8 was replaced while it was decoded, and would mean something else now.
            if value.contains(char::REPLACEMENT_CHARACTER) {
                return Err(Invalid::new(name, "must be valid UTF-8"));
            }
            if seen.contains(&name) {
                return Err(Invalid::new(name, "must not be given twice"));
            }
            match name.as_ref() {
                "types" => wanted.types = types(&value)?,
                // A browser that resumes repeats the query of its first request.
                "after" if last_event_id.is_some() => {}
                "after" => wanted.after = Some(token::read("after", &value)?),
                _ => condition(&mut wanted.filter, &name, &value)?,
            }
            seen.push(name);
        }
        if let Some(id) = last_event_id {
            wanted.after = Some(token::read("Last-Event-ID", id)?);
        }
        Ok(wanted)
    }
}

fn types(text: &str) -> Result<EventTypes, Invalid> {
    let rule = || Invalid::new("types", "must be some of created, changed, attempt and finished, separated by commas");
    let types: Option<Vec<EventType>> = text.split(',').map(EventType::parse).collect();
    types.map(EventTypes::of).ok_or_else(rule)
}

fn condition(filter: &mut Filter, name: &str, value: &str) -> Result<(), Invalid> {
    let status = |text| Status::parse(text).ok_or_else(|| Invalid::new("status", "must be a status"));
    let at = |value| Timestamp::parse(name, value).map(Some);
    match name {
        "status" => filter.status = value.split(',').map(status).collect::<Result<_, _>>()?,
        "namespace" => filter.namespaces = value.split(',').map(Namespace::parse).collect::<Result<_, _>>()?,
        "key" => filter.key = Some(Key::parse(value)?),
        "key_prefix" => filter.key_prefix = Some(value.to_owned()),
        "group" => filter.group = Some(Group::parse(value)?),
        "due_from" => filter.due.from = at(value)?,
        "due_to" => filter.due.to = at(value)?,
        "created_from" => filter.created.from = at(value)?,
        "created_to" => filter.created.to = at(value)?,
        "correlation_id" => filter.correlation_id = Some(CorrelationId::parse(value)?),
        "destination" => filter.destination = Some(value.to_owned()),
        "error" => filter.error = Some(value.to_owned()),
        _ => match name.strip_prefix("metadata.") {
            Some(path) => filter.metadata.push((MetadataPath::parse(name, path)?, value.to_owned())),
            None => return Err(Invalid::new(quoted(name), "is not a known parameter")),
        },
    }
    Ok(())
}
