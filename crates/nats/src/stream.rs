//! Publishes that a stream stores. The stream answers each of them, to our inbox: that is the confirmation.
//!
//! The library has this too, but it remembers for ever whom it promised an answer that never came.

use async_nats::{
    Message, StatusCode,
    jetstream::{publish::PublishAck, response::Response},
};

use tokio::sync::{mpsc, oneshot};

use crate::{
    Outgoing, PublishError,
    inbox::Need,
    link::Link,
    listening,
    rounds::{self, Job},
};

/// How many messages may wait for the answers of streams.
pub(crate) const IN_FLIGHT_MAX: usize = 2048;

/// Where a stream has put a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub stream: String,
    pub sequence: u64,
    /// It had one with this message id already, and dropped this one.
    pub duplicate: bool,
}

/// Publishes the message and waits for what the stream says.
pub(crate) async fn store(link: &Link, rounds: &mpsc::Sender<Job>, message: Outgoing) -> Result<Stored, PublishError> {
    listening::ready(link, Need::Answer).await?;
    let subject = message.subject.clone();
    let mut expected = link.inbox.expect();
    let reply = expected.address.clone();
    let without_answer = async {
        // Without markers there are no rounds, and no message whose refusals this could be taken for.
        match link.inbox.refusal(Need::Marker) {
            None => join(link, rounds, message, reply).await,
            Some(_) => go_alone(link, message, reply).await,
        }
    };
    let answer = tokio::select! {
        biased;
        answer = &mut expected.message => answer.map_err(|_| PublishError::Lost)?,
        error = without_answer => return Err(error),
    };
    read(&answer, &subject)
}

/// Sends the message with the next round. Ends when there will be no answer.
async fn join(link: &Link, rounds: &mpsc::Sender<Job>, message: Outgoing, reply: String) -> PublishError {
    let doom = Doom::of(link, &message);
    let (verdict, judged) = oneshot::channel();
    if rounds.send(Job { message, reply: Some(reply), verdict }).await.is_err() {
        return PublishError::NotConnected;
    }
    match judged.await.unwrap_or(Err(PublishError::Lost)) {
        Err(error) if is_final(&error) => error,
        Ok(()) | Err(_) => doom.comes(link.number()).await,
    }
}

/// Whether what a round says of a message leaves no hope for an answer of the stream.
const fn is_final(error: &PublishError) -> bool {
    !error.is_uncertain() || matches!(error, PublishError::Lost)
}

/// Sends the message by itself. Ends when there will be no answer.
async fn go_alone(link: &Link, message: Outgoing, reply: String) -> PublishError {
    let doom = Doom::of(link, &message);
    let number = link.number();
    let sent = async {
        let message = message.encode(link.client.max_payload())?;
        rounds::publish(link, message, Some(reply)).await
    };
    match sent.await {
        Ok(()) => doom.comes(number).await,
        Err(error) => error,
    }
}

/// What keeps the answer to a message from coming.
struct Doom<'a> {
    link: &'a Link,
    subject: String,
    heard: u64,
}

impl<'a> Doom<'a> {
    /// From before the message is sent.
    fn of(link: &'a Link, message: &Outgoing) -> Self {
        Self { link, subject: message.subject.clone(), heard: link.events.count() }
    }

    /// Waits for it, after the message was sent over the connection with this number.
    async fn comes(self, number: u64) -> PublishError {
        let Self { link, subject, heard } = self;
        let denied = || link.events.is_denied_since(heard, &subject).then(|| PublishError::Denied { subject: subject.clone() });
        link.hopeless(number, Need::Answer, denied).await
    }
}

fn read(answer: &Message, subject: &str) -> Result<Stored, PublishError> {
    if answer.status == Some(StatusCode::NO_RESPONDERS) {
        return Err(PublishError::NoStream { subject: subject.to_owned() });
    }
    match serde_json::from_slice(&answer.payload) {
        Ok(Response::Ok(PublishAck { stream, sequence, duplicate, .. })) => Ok(Stored { stream, sequence, duplicate }),
        Ok(Response::Err { error }) => Err(PublishError::Refused(error.to_string())),
        Err(_) => Err(PublishError::Refused("somebody answered who is not a stream".to_owned())),
    }
}
