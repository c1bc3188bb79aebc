//! The namespaced REST dialect, version 1: camelCase, an id of the client's own for every timer, and errors in a format of their own.
//!
//! ```text
//!   /timers, /timers/{groupId}/{timerId}          the first generation ─┐
//!                                                                       ├─▶ the same use cases, the same commands
//!   /timers/create, /get, /update, /delete        the second, all POST ─┘
//! ```
//!
//! The generations differ in where a request names its timer, and in what a create does about an id that is taken: the first
//! refuses other content, the second overwrites. What is `groupId` in the first is `namespace` in the second; both names are
//! understood everywhere, and answers carry both.

pub(crate) mod create;
pub(crate) mod delete;
mod duration;
mod error;
pub(crate) mod get;
mod policy;
mod selection;
pub(crate) mod update;
mod view;
mod wanted;

#[cfg(test)]
mod tests;

use axum::{Router, routing};
use commands::CommandError;
use domain::Invalid;

use crate::Api;

pub(crate) use error::{ErrorView, status};

/// Everything below is this dialect.
pub(crate) const ROOT: &str = "/api/v1";

pub(crate) fn routes() -> Router<Api> {
    let by_path = routing::get(get::get).put(update::update).delete(delete::delete);
    Router::new()
        .route("/api/v1/timers", routing::post(create::create))
        .route("/api/v1/timers/{groupId}/{timerId}", by_path)
        .route("/api/v1/timers/create", routing::post(create::create_or_replace))
        .route("/api/v1/timers/get", routing::post(get::get_selected))
        .route("/api/v1/timers/update", routing::post(update::update_selected))
        .route("/api/v1/timers/delete", routing::post(delete::delete_selected))
}

/// Rules that are kept behind the dialects name the fields of the native one.
fn in_v1_words(error: CommandError) -> CommandError {
    let CommandError::Invalid(Invalid { field, rule }) = error else { return error };
    let field = match field.as_str() {
        "execute_at" => "executeAt".to_owned(),
        "callback.url" | "url" => "callbackUrl".to_owned(),
        "callback.payload" => "payload".to_owned(),
        "callback.timeout" => "callbackTimeout".to_owned(),
        _ => field,
    };
    CommandError::Invalid(Invalid { field, rule })
}
