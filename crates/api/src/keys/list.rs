//! `GET /keys`: every key that was issued.

use serde::Serialize;
use utoipa::ToSchema;

use super::KeyView;
use crate::{
    auth::Permitted,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Keys {
    keys: Vec<KeyView>,
}

/// List keys
///
/// Every key that was issued, the oldest first, revoked ones included. The administrator's own key is not among them.
#[utoipa::path(
    get, path = "/keys", tag = "keys", operation_id = "listKeys", security(("ApiKey" = [])),
    responses(
        (status = 200, description = "The keys, perhaps none: `success`.", body = Envelope<Keys>),
        (status = 403, description = "`this takes the administrator's key`.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn list(Permitted(commands): Permitted) -> Result<Answer<Keys>, ApiError> {
    let (keys, uses) = (commands.keys().await?, commands.key_uses().await?);
    let keys = keys.into_iter().map(|key| KeyView::used(key.clone(), uses.get(&key.id).copied())).collect();
    Ok(Answer::ok("success", Keys { keys }))
}
