//! `GET /operations`, `GET /operations/{id}`, `DELETE /operations/{id}`: bulk changes that go on in the background.

use axum::extract::{FromRequestParts, Path};
use commands::{BulkOperation, BulkWork, Filter, OperationId, OperationState};
use domain::{Invalid, TimerId, Timestamp};
use http::request::Parts;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Api,
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    filter::BulkFilter,
    schema,
};

/// A bulk change that goes on, or went on, in the background.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Operation)]
pub(crate) struct OperationView {
    #[schema(value_type = String, format = "uuid", example = "01890a5d-ac96-774b-bcce-b302099a8057")]
    id: TimerId,
    #[schema(value_type = schema::BulkActionName)]
    action: String,
    /// Which timers are meant, with what follows from the key and the time of the request.
    #[schema(value_type = BulkFilter)]
    filter: Filter,
    #[schema(value_type = schema::OperationStateName)]
    state: &'static str,
    /// How many timers matched when it started; where they are many, an estimate until it has counted them.
    #[schema(minimum = 0, example = 120000)]
    matched: u64,
    #[schema(minimum = 0, example = 50000)]
    changed: u64,
    /// Those that the action does not concern, or that were changed or got another status meanwhile.
    #[schema(minimum = 0, example = 12)]
    skipped: u64,
    /// Those that could not be changed because they cannot be read.
    #[schema(minimum = 0, example = 0)]
    errors: u64,
    /// Why it failed.
    #[schema(required = true)]
    error: Option<String>,
    #[schema(value_type = String, format = DateTime, example = "2030-01-31T12:00:00Z")]
    started_at: Timestamp,
    #[schema(value_type = Option<String>, required = true, format = DateTime)]
    finished_at: Option<Timestamp>,
    /// The name of the key that asked for it.
    #[schema(example = "billing service")]
    by: String,
}

impl OperationView {
    pub(crate) fn of(operation: BulkOperation) -> Self {
        Self {
            id: operation.id.0,
            action: BulkWork::name_in(&operation.work).to_owned(),
            filter: operation.filter,
            state: operation.state.as_str(),
            matched: operation.matched,
            changed: operation.changed,
            skipped: operation.skipped,
            errors: operation.errors,
            error: operation.error,
            started_at: operation.started_at,
            finished_at: operation.finished_at,
            by: operation.by,
        }
    }
}

/// The latest operations.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OperationList)]
pub(crate) struct OperationsView {
    operations: Vec<OperationView>,
}

/// The operation that the path names.
pub(crate) struct PathOperation(OperationId);

impl FromRequestParts<Api> for PathOperation {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        match Path::<String>::from_request_parts(parts, api).await {
            Ok(Path(text)) => Ok(Self(OperationId(TimerId::parse("id", &text)?))),
            Err(_) => Err(Invalid::new("id", "must be a UUID").into()),
        }
    }
}

/// List operations
///
/// The latest 100 operations that concern only namespaces which the key opens, the newest first.
#[utoipa::path(
    get, path = "/operations", tag = "operations", operation_id = "listOperations", security(("ApiKey" = [])),
    responses((status = 200, description = "They are: `success`.", body = Envelope<OperationsView>))
)]
pub(crate) async fn list(Permitted(commands): Permitted) -> Result<Answer<OperationsView>, ApiError> {
    let operations = commands.operations().await?.into_iter().map(OperationView::of).collect();
    Ok(Answer::ok("success", OperationsView { operations }))
}

/// Show an operation
///
/// How far a bulk change has come. One that has ended is kept as long as timers are (`RETENTION`).
#[utoipa::path(
    get, path = "/operations/{id}", tag = "operations", operation_id = "getOperation", security(("ApiKey" = [])),
    params(("id" = String, Path, format = "uuid", description = "The id of the operation.")),
    responses(
        (status = 200, description = "It is: `success`.", body = Envelope<OperationView>),
        (status = 400, description = "The id is no UUID.", body = ErrorEnvelope),
        (status = 404, description = "`operation not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn get(
    Permitted(commands): Permitted,
    PathOperation(id): PathOperation,
) -> Result<Answer<OperationView>, ApiError> {
    Ok(Answer::ok("success", OperationView::of(commands.operation(id).await?)))
}

/// Stop an operation
///
/// Once this has answered 200, it changes nothing more; what it has changed stays changed. Stopping one that has ended is 200 too.
#[utoipa::path(
    delete, path = "/operations/{id}", tag = "operations", operation_id = "stopOperation", security(("ApiKey" = [])),
    params(("id" = String, Path, format = "uuid", description = "The id of the operation.")),
    responses(
        (status = 200, description = "It does not run any more: `operation stopped`, or `operation has ended already`.", body = Envelope<OperationView>),
        (status = 400, description = "The id is no UUID.", body = ErrorEnvelope),
        (status = 404, description = "`operation not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn stop(
    Permitted(commands): Permitted,
    PathOperation(id): PathOperation,
) -> Result<Answer<OperationView>, ApiError> {
    let operation = commands.stop_operation(id).await?;
    let is_stopped = operation.state == OperationState::Stopped;
    let message = if is_stopped { "operation stopped" } else { "operation has ended already" };
    Ok(Answer::ok(message, OperationView::of(operation)))
}
