//! `/dev/…`, in `timer dev` alone: what its receiver got, what that answers, and the clock. For the administrator's key only, and
//! not part of the OpenAPI document, because no other service has these routes.

mod answers;
mod clock;
mod inbox;

use axum::{Router, routing};

use crate::Api;

/// The routes, where there is something to serve.
pub(crate) fn routes(tools: Option<&dev::DevTools>) -> Router<Api> {
    let Some(tools) = tools else { return Router::new() };
    let (listed, cleared, answers, clock) = (tools.clone(), tools.clone(), tools.clone(), tools.clone());
    let list = async move |admin, uri| inbox::list(&listed, admin, uri).await;
    let clear = async move |admin| inbox::clear(&cleared, admin);
    let replace = async move |admin, body| answers::replace(&answers, admin, body);
    let advance = async move |admin, body| clock::advance(&clock, admin, body).await;
    Router::new()
        .route("/dev/inbox", routing::get(list).delete(clear))
        .route("/dev/inbox/answers", routing::put(replace))
        .route("/dev/clock/advance", routing::post(advance))
}

#[cfg(test)]
mod tests;
