//! `GET /timers/{id}`: one timer with everything that is known about it.

use crate::{
    auth::Permitted,
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
pub(crate) async fn get(Permitted(commands): Permitted, PathId(id): PathId) -> Result<Answer<DetailView>, ApiError> {
    let timer = commands.get(id).await?;
    let revision = timer.revision;
    Ok(Answer::ok("success", DetailView::of(timer, commands.clock.now())).with_revision(revision))
}

#[cfg(test)]
mod tests;
