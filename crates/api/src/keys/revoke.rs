//! `DELETE /keys/{id}`: takes a key out of use.

use axum::extract::State;
use domain::AccessKeyId;

use crate::{
    Api,
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    id::PathId,
    schema::Nothing,
};

/// Revoke a key
///
/// From now on it opens nothing, here at once and in other processes on the same database within a second. Doing it again is no
/// error. The timers of its holder stay.
#[utoipa::path(
    delete, path = "/keys/{id}", tag = "keys", operation_id = "revokeKey", security(("ApiKey" = [])),
    params(("id" = String, Path, format = "uuid", description = "The id of the key, as the list shows it.")),
    responses(
        (status = 200, description = "It opens nothing any more: `key revoked successfully`.", body = Envelope<Nothing>),
        (status = 400, description = "The id is no UUID.", body = ErrorEnvelope),
        (status = 403, description = "`this takes the administrator's key`.", body = ErrorEnvelope),
        (status = 404, description = "`key not found`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn revoke(
    State(api): State<Api>,
    Permitted(commands): Permitted,
    PathId(id): PathId,
) -> Result<Answer<()>, ApiError> {
    let revoked = commands.revoke_key(AccessKeyId(id.as_uuid())).await;
    // Also when it is not known whether it was done.
    api.keyring.forget().await;
    revoked?;
    Ok(Answer::ok("key revoked successfully", ()))
}
