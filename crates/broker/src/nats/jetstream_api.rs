//! Requests to the JetStream API.

use std::time::Duration;

use async_nats::{
    Client,
    jetstream::{
        Context, consumer,
        context::{ContextBuilder, RequestErrorKind},
        response::Response,
    },
};
use domain::Cause;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::settings;
use crate::BrokerError;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How the API says that there is no such object.
const NOT_FOUND: usize = 404;

pub(super) async fn find_consumer(context: &Context) -> Result<Option<consumer::Info>, BrokerError> {
    find(context, format!("CONSUMER.INFO.{}.{}", settings::COMMANDS, settings::CONSUMER)).await
}

pub(super) fn context(client: &Client) -> Context {
    ContextBuilder::new().timeout(ANSWER_WITHIN).build(client.clone())
}

pub(super) async fn find<T: DeserializeOwned>(context: &Context, what: String) -> Result<Option<T>, BrokerError> {
    ask(context, what, &json!({})).await
}

/// Sends a request to the JetStream API. `None` when the object does not exist.
pub(super) async fn ask<T: DeserializeOwned>(context: &Context, what: String, which: &Value) -> Result<Option<T>, BrokerError> {
    let answer: Response<T> = context.request(what, which).await.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => {
            let text = "JetStream is not there: it is not enabled on the NATS server, or not for this user";
            BrokerError::Refused(Cause::new(text, error))
        }
        RequestErrorKind::TimedOut => {
            let text = format!(
                "JetStream did not answer within {ANSWER_WITHIN:?}: it is busy, has no leader, or the NATS user may not use $JS.API.>"
            );
            BrokerError::Away(Cause::new(text, error))
        }
        RequestErrorKind::InvalidSubject | RequestErrorKind::Other => {
            BrokerError::Away(Cause::new(format!("JetStream could not be asked: {error}"), error))
        }
    })?;
    match answer {
        Response::Ok(found) => Ok(Some(found)),
        Response::Err { error } if error.code() == NOT_FOUND => Ok(None),
        Response::Err { error } => Err(BrokerError::Refused(Cause::of(error))),
    }
}
