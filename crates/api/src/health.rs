//! `GET /healthz`: whether the service can do its work.

use std::{fmt, sync::Arc};

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use domain::Timestamp;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    Api,
    envelope::{Code, Envelope, json},
};

/// One more thing that `/healthz` tells, beside the database. Reading it must not wait.
#[derive(Clone)]
pub struct HealthItem {
    /// Its name in the answer.
    pub name: &'static str,
    pub read: Arc<dyn Fn() -> Reading + Send + Sync>,
}

/// How that thing is.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub value: Value,
    /// Whether the service can do its work as far as this goes.
    pub well: bool,
}

impl fmt::Debug for HealthItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthItem").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Health)]
pub(crate) struct HealthView {
    /// `up` or `degraded`.
    #[schema(value_type = String, pattern = "^(up|degraded)$", example = "up")]
    status: &'static str,
    /// `connected` or `disconnected`.
    #[schema(value_type = String, pattern = "^(connected|disconnected)$", example = "connected")]
    database: &'static str,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T10:30:00Z")]
    timestamp: Timestamp,
    #[serde(flatten)]
    #[schema(ignore)]
    items: Map<String, Value>,
}

/// Health
///
/// 200 when the service can do its work, 500 with `degraded` when it cannot; within 5 seconds even when the database hangs.
#[utoipa::path(
    get, path = "/healthz", tag = "service", operation_id = "health",
    responses(
        (status = 200, description = "`healthy`", body = Envelope<HealthView>),
        (status = 500, description = "`database connection failed`, or what else is not well.", body = Envelope<HealthView>),
    )
)]
pub(crate) async fn health(State(api): State<Api>) -> Response {
    let health = api.unrestricted.health().await;
    let readings: Vec<_> = api.config.health.iter().map(|item| (item.name, (item.read)())).collect();
    let unwell = readings.iter().find(|(_, reading)| !reading.well).map(|(name, _)| *name);
    let (status, code, message) = match (health.database, unwell) {
        (true, None) => (StatusCode::OK, Code::Success, "healthy".into()),
        (true, Some(name)) => (StatusCode::INTERNAL_SERVER_ERROR, Code::Unexpected, format!("{name} is not well").into()),
        (false, _) => (StatusCode::INTERNAL_SERVER_ERROR, Code::Unexpected, "database connection failed".into()),
    };
    let data = HealthView {
        status: if status == StatusCode::OK { "up" } else { "degraded" },
        database: if health.database { "connected" } else { "disconnected" },
        timestamp: health.at,
        items: readings.into_iter().map(|(name, reading)| (name.to_owned(), reading.value)).collect(),
    };
    json(status, &Envelope { code, message, data }).into_response()
}

#[cfg(test)]
mod tests;
