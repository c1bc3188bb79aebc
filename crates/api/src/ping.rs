//! `GET /ping`: whether the service is there.

use crate::{
    envelope::{Answer, Envelope},
    schema::Nothing,
};

/// Ping
///
/// Answers without asking anything else: the process is up.
#[utoipa::path(
    get, path = "/ping", tag = "service", operation_id = "ping",
    responses((status = 200, description = "`pong`", body = Envelope<Nothing>))
)]
pub(crate) async fn ping() -> Answer<()> {
    Answer::ok("pong", ())
}
