//! Publishes to streams. The stream answers each message at our inbox: that is the confirmation.
//!
//! The library has this too, but leaks memory for every answer that never comes.

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

/// How many messages may await the answers of streams.
pub(crate) const IN_FLIGHT_MAX: usize = 2048;

/// Where a stream has stored a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub stream: String,
    pub sequence: u64,
    /// The stream had a message with this id already, and dropped this one.
    pub duplicate: bool,
}

/// Publishes the message and waits for the answer of the stream.
pub(crate) async fn store(link: &Link, rounds: &mpsc::Sender<Job>, message: Outgoing) -> Result<Stored, PublishError> {
    listening::ready(link, Need::Answer).await?;
    let subject = message.subject.clone();
    let mut expected = link.inbox.expect();
    let reply = expected.address.clone();
    let without_answer = async {
        // Without markers there are no rounds, and no message of a round to which a refusal of this one could be attributed.
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

/// Sends the message with the next round. Completes when no answer will come.
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

/// Whether the verdict of a round on a message rules out an answer of the stream.
const fn is_final(error: &PublishError) -> bool {
    !error.is_uncertain() || matches!(error, PublishError::Lost)
}

/// Sends the message outside of the rounds. Completes when no answer will come.
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
    /// Starts to watch, before the message is sent.
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
        Err(_) => Err(PublishError::Refused("the answer did not come from a stream".to_owned())),
    }
}
