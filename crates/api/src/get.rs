//! `GET /timers/{id}`: one timer with everything that is known about it.

use axum::extract::State;

use crate::{
    Api,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    view::DetailView,
};

/// Read a timer
///
/// Everything that is known about one timer, with its payload and metadata exactly as they were given.
#[utoipa::path(
    get, path = "/timers/{id}", tag = "timers", operation_id = "getTimer", security(("ApiKey" = [])),
    params(("id" = String, Path, format = "uuid", description = "The id that creating the timer answered with.")),
    responses(
        (status = 200, description = "The timer as it stands: `success`.", body = Envelope<DetailView>),
        (status = 400, description = "The id is no UUID.", body = ErrorEnvelope),
        (status = 404, description = "`timer not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn get(State(api): State<Api>, PathId(id): PathId) -> Result<Answer<DetailView>, ApiError> {
    let timer = api.commands.get(id).await?;
    Ok(Answer::ok("success", DetailView::of(timer, api.commands.clock.now())))
}

#[cfg(test)]
mod tests;
