//! A filter as the JSON object that clients send and operations keep.

use std::collections::BTreeMap;

use domain::{CorrelationId, Group, Invalid, Key, MetadataPath, Namespace, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Filter, Period};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilterText {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    status: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespace: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_prefix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    members: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Filter> for FilterText {
    fn from(filter: Filter) -> Self {
        let text = |at: Option<Timestamp>| at.map(|at| at.to_string());
        Self {
            status: filter.status.iter().map(ToString::to_string).collect(),
            namespace: filter.namespaces.iter().map(ToString::to_string).collect(),
            key: filter.key.map(|key| key.to_string()),
            key_prefix: filter.key_prefix,
            group: filter.group.map(|group| group.to_string()),
            due_from: text(filter.due.from),
            due_to: text(filter.due.to),
            created_from: text(filter.created.from),
            created_to: text(filter.created.to),
            correlation_id: filter.correlation_id.map(|id| id.to_string()),
            destination: filter.destination,
            metadata: filter.metadata.into_iter().map(|(path, text)| (path.to_string(), text)).collect(),
            members: filter.members,
            error: filter.error,
        }
    }
}

impl TryFrom<FilterText> for Filter {
    type Error = Invalid;

    fn try_from(text: FilterText) -> Result<Self, Invalid> {
        let status = |text: &String| Status::parse(text).ok_or_else(|| Invalid::new("status", "must be a status"));
        let at = |field: &str, text: Option<String>| text.map(|text| Timestamp::parse(field, &text)).transpose();
        let condition = |(path, text): (String, String)| Ok((MetadataPath::parse("metadata", &path)?, text));
        Ok(Self {
            status: text.status.iter().map(status).collect::<Result<_, _>>()?,
            namespaces: text.namespace.iter().map(|name| Namespace::parse(name)).collect::<Result<_, _>>()?,
            key: text.key.as_deref().map(Key::parse).transpose()?,
            key_prefix: text.key_prefix,
            group: text.group.as_deref().map(Group::parse).transpose()?,
            due: Period { from: at("due_from", text.due_from)?, to: at("due_to", text.due_to)? },
            created: Period { from: at("created_from", text.created_from)?, to: at("created_to", text.created_to)? },
            correlation_id: text.correlation_id.as_deref().map(CorrelationId::parse).transpose()?,
            destination: text.destination,
            metadata: text.metadata.into_iter().map(condition).collect::<Result<_, Invalid>>()?,
            members: text.members,
            error: text.error,
        })
    }
}
