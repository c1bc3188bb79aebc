//! Plain publishes, and how it is known that the server took them.
//!
//! The protocol has no answer to a publish, except one that says no. So messages are sent in rounds: those that are waiting, and
//! behind them a marker, which is a message to our own inbox. While one round waits for its marker, the next one gathers. When
//! the marker comes back, the server has taken every message of the round, because
//!
//! 1. **They went over one connection.** The library may have lost a connection in the middle of the round, and have sent
//!    the rest, marker included, over a new one. It counts its connections. Messages that are handed to it when the count is n
//!    go over the n-th or a later one, the marker that comes back went over the last, and the count is read before the first
//!    message and after the marker came: when it is the same, there was only one.
//! 2. **The server takes them in order.** It reads a connection in one piece of code, line by line, and has routed each
//!    message, or refused it, when it reads the next.
//! 3. **What it refused, it said before.** A refusal is written to the same connection as the marker, ahead of it. The
//!    library reads it first, and hands it to a task that does nothing but call [`Events::take`](crate::events::Events::take).
//!    All of that happens on one thread: when the marker wakes the round, the refusal has woken that task already, and after
//!    the round has yielded to all other tasks, it has been taken in.
//! 4. **It is known whom it refused.** It names the subject, and as many refusals as there were messages to that subject are
//!    theirs. Any other number means that another message was refused as well: a server that maps subjects names what it made
//!    of the subject. Then no message counts as confirmed. For this count to be right, messages to streams go through the rounds, too.
//! 5. **Nothing it said was dropped.** The library holds 128 events and drops what comes on top. Dropping one means that the 128
//!    before it are taken in after it was dropped; when fewer than that were taken in during the round, none was dropped.
//!    A round is smaller than that, so one in which everything is refused still has an outcome.
//!
//! Anything short of that is no confirmation. What the server does with the message then is another matter: its subscribers
//! get it, and without any it is lost. For more there are streams.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::yield_now,
    time::timeout,
};

use crate::{
    CONFIRMED_WITHIN, Outgoing, PublishError,
    events::{Denials, EVENTS_HELD_MAX, Since},
    inbox::Need,
    link::Link,
    listening,
    message::Encoded,
    metrics,
};

/// How many messages may wait for their round.
pub(crate) const QUEUE_MAX: usize = 1024;
/// Half of the events that the library holds, so that the refusals of one round fit.
const ROUND_MESSAGES_MAX: usize = EVENTS_HELD_MAX as usize / 2;
/// Unless one message alone is larger. A slow line has to bring a round through in time.
const ROUND_BYTES_MAX: usize = 1 << 20;

pub(crate) type Verdict = Result<(), PublishError>;

/// A message that waits for its round.
pub(crate) struct Job {
    pub message: Outgoing,
    /// Where an answer is expected.
    pub reply: Option<String>,
    pub verdict: oneshot::Sender<Verdict>,
}

/// A message of the round, once it was handed to the library.
struct Sent {
    subject: String,
    verdict: oneshot::Sender<Verdict>,
}

/// Round after round, until no handle is left that could send.
pub(crate) async fn run(link: Arc<Link>, queue: Arc<Mutex<mpsc::Receiver<Job>>>) {
    // Only the run before can hold it, and its client has ended.
    let mut queue = queue.lock_owned().await;
    let mut held = None;
    while let Some(jobs) = gather(&mut queue, &mut held).await {
        round(&link, jobs).await;
    }
}

/// Waits for a message and takes those that wait with it. One that makes the round too large is held for the next.
async fn gather(queue: &mut mpsc::Receiver<Job>, held: &mut Option<Job>) -> Option<VecDeque<Job>> {
    let first = match held.take() {
        Some(job) => job,
        None => queue.recv().await?,
    };
    let mut bytes = first.message.bytes();
    let mut jobs = VecDeque::from([first]);
    while jobs.len() < ROUND_MESSAGES_MAX
        && let Ok(job) = queue.try_recv()
    {
        bytes += job.message.bytes();
        if bytes > ROUND_BYTES_MAX {
            *held = Some(job);
            break;
        }
        jobs.push_back(job);
    }
    Some(jobs)
}

async fn round(link: &Link, mut waiting: VecDeque<Job>) {
    let mut sent = Vec::with_capacity(waiting.len());
    let outcome = timeout(CONFIRMED_WITHIN, confirm(link, &mut waiting, &mut sent)).await.unwrap_or(Err(PublishError::TimedOut));
    if outcome == Err(PublishError::TimedOut) {
        link.inbox.doubt();
    }
    metrics::round(link.name, u32::try_from(sent.len()).unwrap_or(u32::MAX));
    // A publish that does not wait any more is not told.
    for Sent { subject, verdict } in sent {
        let _ = verdict.send(match &outcome {
            Ok(denied) if denied.contains_key(&subject) => Err(PublishError::Denied { subject }),
            Ok(_) => Ok(()),
            Err(error) => Err(error.clone()),
        });
    }
    for Job { verdict, .. } in waiting {
        // These have not left.
        let _ = verdict.send(Err(match &outcome {
            Ok(_) | Err(PublishError::Lost) => PublishError::NotConnected,
            Err(error) => error.clone(),
        }));
    }
}

/// Sends the round and waits until all of it is known to be taken, except what goes to subjects that were denied.
async fn confirm(link: &Link, waiting: &mut VecDeque<Job>, sent: &mut Vec<Sent>) -> Result<Denials, PublishError> {
    listening::ready(link, Need::Marker).await?;
    let number = link.number();
    let heard = link.events.count();
    let marked = async {
        send(link, waiting, sent).await?;
        if sent.is_empty() {
            return Ok(());
        }
        let mut marker = link.inbox.expect();
        publish(link, Encoded::empty(&marker.address), None).await?;
        (&mut marker.message).await.map(drop).map_err(|_| PublishError::Lost)
    };
    tokio::select! {
        biased;
        marked = marked => marked?,
        error = link.hopeless(number, Need::Marker, || None) => return Err(error),
    }
    yield_now().await;
    if link.number() != number {
        return Err(PublishError::Lost);
    }
    understand(link.events.since(heard), sent)
}

/// Whom the server refused during a round whose marker came back.
fn understand(since: Since, sent: &[Sent]) -> Result<Denials, PublishError> {
    if since.events >= EVENTS_HELD_MAX {
        return Err(PublishError::Unheard);
    }
    if let Some(complaint) = since.complaint {
        // It does not say which message it means.
        return Err(PublishError::Refused(complaint));
    }
    let is_of_others =
        |(subject, count): &(&String, &usize)| sent.iter().filter(|sent| sent.subject == **subject).count() != **count;
    match since.denied.iter().find(is_of_others) {
        Some((subject, _)) => Err(PublishError::Refused(format!("no permission to publish to {subject}"))),
        None => Ok(since.denied),
    }
}

async fn send(link: &Link, waiting: &mut VecDeque<Job>, sent: &mut Vec<Sent>) -> Result<(), PublishError> {
    while let Some(Job { message, reply, verdict }) = waiting.pop_front() {
        if verdict.is_closed() {
            continue;
        }
        match message.encode(link.client.max_payload()) {
            Ok(message) => {
                sent.push(Sent { subject: message.subject.to_string(), verdict });
                publish(link, message, reply).await?;
            }
            Err(error) => drop(verdict.send(Err(error))),
        }
    }
    Ok(())
}

pub(crate) async fn publish(link: &Link, message: Encoded, reply: Option<String>) -> Result<(), PublishError> {
    let Encoded { subject, headers, payload } = message;
    let handed_over = match reply {
        Some(reply) => link.client.publish_with_reply_and_headers(subject, reply, headers, payload).await,
        None if headers.is_empty() => link.client.publish(subject, payload).await,
        None => link.client.publish_with_headers(subject, headers, payload).await,
    };
    // Subject and size have been checked: only a client that has ended refuses it.
    handed_over.map_err(|_| PublishError::NotConnected)
}

impl Encoded {
    fn empty(subject: &str) -> Self {
        Self { subject: subject.into(), headers: async_nats::HeaderMap::new(), payload: Bytes::new() }
    }
}

#[cfg(test)]
mod tests;
