//! Learns which subjects the streams of the platform listen on, also on nodes without the command consumer.

use std::time::Duration;

use ::nats::{Connection, Outgoing, PublishError};
use async_nats::jetstream::{Context, ErrorCode, context::RequestErrorKind, response::Response, stream};
use domain::Cause;
use serde_json::json;

use super::{jetstream_api, listening, settings};
use crate::{BrokerError, PlatformSubjects};

/// How often the streams are read again, because the operator may change them at any time.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// The interval without permission to read: each refusal is logged.
const ASK_AGAIN_ONCE_DENIED: Duration = Duration::from_secs(3600);
const NOT_THERE: [ErrorCode; 3] =
    [ErrorCode::STREAM_NOT_FOUND, ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT];
/// The pause while JetStream does not answer.
const PAUSE: Duration = Duration::from_secs(1);
const CONNECTED_WITHIN: Duration = Duration::from_secs(60);

/// Keeps `platform` up to date with the subjects of both streams, for ever. The subjects count as known from the first answer
/// on, even if it says that there is no such stream, no JetStream, or no permission to ask.
pub async fn learn_platform_subjects(connection: Connection, platform: PlatformSubjects) {
    loop {
        if !connection.connected_within(CONNECTED_WITHIN).await {
            continue;
        }
        let pause = match ask(&connection, &platform).await {
            Ok(pause) => {
                platform.set_known();
                pause
            }
            Err(error) => {
                tracing::warn!(%error, "the subjects of the platform's streams could not be read; trying again");
                PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Asks once, and returns how long the answer holds.
async fn ask(connection: &Connection, platform: &PlatformSubjects) -> Result<Duration, BrokerError> {
    let context = jetstream_api::context(&connection.client().await);
    for name in [settings::COMMANDS, settings::EVENTS] {
        let what = format!("STREAM.INFO.{name}");
        if may_not_ask(connection, &what).await {
            tracing::warn!(
                nats.stream = name,
                "the NATS user may not ask what the stream listens on: subjects that are mapped to it are open to callbacks"
            );
            return Ok(ASK_AGAIN_ONCE_DENIED);
        }
        match find(&context, what).await? {
            Some(found) => {
                let subjects = listening::subjects(&context, &found.config).await;
                platform.learn(name, subjects.iter().map(String::as_str));
            }
            None => platform.learn(name, []),
        }
    }
    Ok(ASK_AGAIN)
}

/// `None` when there is no such stream, or no JetStream at all. A stream that exists but cannot answer now is an error.
async fn find(context: &Context, what: String) -> Result<Option<stream::Info>, BrokerError> {
    let answer: Response<stream::Info> = match context.request(what, &json!({})).await {
        Ok(answer) => answer,
        Err(error) if error.kind() == RequestErrorKind::NoResponders => return Ok(None),
        Err(error) => return Err(BrokerError::Away(Cause::new(format!("JetStream does not answer: {error}"), error))),
    };
    match answer {
        Response::Ok(found) => Ok(Some(found)),
        Response::Err { error } if NOT_THERE.contains(&error.error_code()) => Ok(None),
        Response::Err { error } => Err(BrokerError::Refused(Cause::of(error))),
    }
}

/// Whether the server denies the request. A denied request is never answered, so a plain message to the same subject is
/// published: the server refuses it if the permission is missing, and JetStream ignores it if not, since it has no reply
/// subject.
async fn may_not_ask(connection: &Connection, what: &str) -> bool {
    let question = Outgoing { subject: format!("$JS.API.{what}"), headers: Vec::new(), payload: Vec::new().into() };
    matches!(connection.publish(question).await, Err(PublishError::Denied { .. } | PublishError::Unconfirmable { .. }))
}
