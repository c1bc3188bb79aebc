//! Fetching commands: one request at a time, each for a second.
//!
//! ```text
//!   us       ──"512, for 1 s"──▶            ──"512, for 1 s"──▶
//!   server                      m m m m m …                    m m … (1 s) "over"
//! ```
//!
//! Because a request ends so soon, no other state about it is needed: not whether the server still knows it after a reconnect,
//! and not whether an abandoned one still brings messages. A request that does not end in time was lost together with its
//! server. The next request leaves as soon as the last one is used up, so that commands travel while earlier ones are handled.

use std::{collections::VecDeque, sync::atomic::Ordering, time::Duration};

use async_nats::{
    Client, Message, StatusCode, Subject, Subscriber,
    jetstream::{
        self, AckKind, Context,
        consumer::{self, pull::BatchConfig},
    },
};
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, timeout_at};

use super::{
    jetstream_api,
    settings::{COMMANDS, COMMANDS_PREFIX, CONSUMER, DEAD_SUBJECT},
};
use crate::BrokerError;

const REQUEST_LIVES: Duration = Duration::from_secs(1);
/// How much later than the end of its life a request's end may be noticed.
const END_LATE_MAX: Duration = Duration::from_secs(2);
/// The bytes that one request may bring, unless a single message may be larger.
const REQUEST_BYTES_MAX: usize = 16 << 20;
const MESSAGES_OF_LARGEST_SIZE_MIN: usize = 2;
/// How soon a lost connection is noticed once another one is open.
const LOSS_NOTICED_WITHIN: Duration = Duration::from_millis(200);

/// The state of fetching, until an error ends it.
pub(super) struct Pull {
    context: Context,
    client: Client,
    /// The number of the connection in use: servers forget requests together with connections.
    connection: u64,
    inbox: String,
    messages: Subscriber,
    limits: Limits,
    requests: u64,
    open: Option<Open>,
    /// Messages that were fetched and not handed out.
    ready: VecDeque<Message>,
    /// Messages in the stream that are not commands, to be acknowledged.
    passed_over: Vec<Subject>,
}

/// What the consumer allows a request to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limits {
    batch: usize,
    bytes: usize,
    lives: Duration,
}

/// A request that the server has not ended.
struct Open {
    reply: Subject,
    left: usize,
    has_brought: bool,
    over_by: Instant,
}

impl Limits {
    fn of(consumer: &consumer::Config, message_bytes_max: usize) -> Self {
        let allowed = |limit: i64| usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let expires = Some(consumer.max_expires).filter(|limit| !limit.is_zero()).unwrap_or(REQUEST_LIVES);
        let bytes = REQUEST_BYTES_MAX.max(message_bytes_max.saturating_mul(MESSAGES_OF_LARGEST_SIZE_MIN));
        Self {
            batch: allowed(consumer.max_batch),
            bytes: bytes.min(allowed(consumer.max_bytes)),
            lives: REQUEST_LIVES.min(expires),
        }
    }
}

/// What a status message means for the request that it answers.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// The request has expired, or has brought what it could.
    Over,
    /// The server has sent all that was requested. In a cluster this status may overtake the messages that it announces.
    Full,
    Failed(BrokerError),
}

/// Interprets a status message of the server.
fn ending(status: StatusCode, description: &str, has_brought: bool) -> Ending {
    match (status, description) {
        (StatusCode::TIMEOUT | StatusCode::NOT_FOUND, _) => Ending::Over,
        (StatusCode::NO_RESPONDERS, _) => Ending::Failed(BrokerError::Away("the consumer is not there".into())),
        (_, "Batch Completed") => Ending::Full,
        // More bytes are waiting than the request allowed.
        (_, "Message Size Exceeds MaxBytes") if has_brought => Ending::Over,
        (_, "Consumer Deleted" | "Leadership Change" | "Server Shutdown") => {
            Ending::Failed(BrokerError::Away(format!("it ended a request for commands: {description}").into()))
        }
        _ => Ending::Failed(BrokerError::Refused(format!("it does not hand out commands: {status} {description}").into())),
    }
}

impl Pull {
    pub(super) async fn begin(client: Client, consumer: &consumer::Config) -> Result<Self, BrokerError> {
        let context = jetstream_api::context(&client);
        let connection = connections(&client);
        let limits = Limits::of(consumer, client.max_payload());
        let inbox = client.new_inbox();
        let messages = client.subscribe(format!("{inbox}.*")).await.map_err(|error| away(&error.to_string()))?;
        Ok(Self {
            context,
            client,
            connection,
            inbox,
            messages,
            limits,
            requests: 0,
            open: None,
            ready: VecDeque::new(),
            passed_over: Vec::new(),
        })
    }

    /// Waits for commands until a request ends; an empty answer is valid. Is safe to cancel: fetched messages stay here. After
    /// an error no messages are left here.
    pub(super) async fn next(&mut self, max: usize) -> Result<Vec<jetstream::Message>, BrokerError> {
        loop {
            // The number is read first, so that everything that came over the lost connection has been read by then.
            let is_lost = connections(&self.client) != self.connection;
            let heard = self.hear(max);
            self.forget_passed_over().await;
            // Messages that came before the failure are still valid.
            if !self.ready.is_empty() {
                if heard.is_ok() && !is_lost && self.open.is_none() {
                    // An error of this request shows at the next call.
                    drop(self.request(max).await);
                }
                let context = &self.context;
                let handed_out = |message| jetstream::Message { message, context: context.clone() };
                return Ok(self.ready.drain(..max.min(self.ready.len())).map(handed_out).collect());
            }
            heard?;
            if is_lost {
                return Err(away("the connection was lost during a request for commands"));
            }
            let over_by = match &self.open {
                Some(open) => open.over_by,
                None => self.request(max).await?,
            };
            match timeout_at(over_by.min(Instant::now() + LOSS_NOTICED_WITHIN), self.messages.next()).await {
                Ok(Some(message)) => self.take(message)?,
                Ok(None) => return Err(away("the NATS client has ended")),
                Err(_) if Instant::now() < over_by => continue,
                Err(_) => return Err(away("it does not answer a request for commands")),
            }
            if self.open.is_none() && self.ready.is_empty() {
                self.forget_passed_over().await;
                return Ok(Vec::new());
            }
        }
    }

    /// Waits until no more messages come, and gives back those that were not handed out. `Ok` means that the server has
    /// processed every verdict.
    pub(super) async fn end(mut self) -> Result<(), BrokerError> {
        while let Some(open) = &self.open {
            let Ok(Some(message)) = timeout_at(open.over_by, self.messages.next()).await else { break };
            if self.take(message).is_err() {
                break;
            }
        }
        self.forget_passed_over().await;
        for reply in self.ready.drain(..).filter_map(|message| message.reply) {
            self.client.publish(reply, AckKind::Nak(None).into()).await.map_err(|error| away(&error.to_string()))?;
        }
        // A server answers in order: with this answer, everything that was sent before has been processed.
        jetstream_api::find_consumer(&self.context).await.map(drop)
    }

    /// Takes up to `max` of the messages that have arrived.
    fn hear(&mut self, max: usize) -> Result<(), BrokerError> {
        while self.ready.len() < max
            && let Some(message) = self.messages.next().now_or_never()
        {
            self.take(message.ok_or_else(|| away("the NATS client has ended"))?)?;
        }
        Ok(())
    }

    fn take(&mut self, message: Message) -> Result<(), BrokerError> {
        // A command may carry a status header too, which means nothing. Status messages are told from commands by the subject.
        let is_of_server = message.subject.starts_with(&self.inbox);
        if let Some(status) = message.status.filter(|status| is_of_server && *status != StatusCode::OK) {
            return self.end_request(&message.subject, status, message.description.as_deref().unwrap_or_default());
        }
        if let Some(open) = &mut self.open {
            open.left = open.left.saturating_sub(1);
            open.has_brought = true;
            if open.left == 0 {
                self.open = None;
            }
        }
        if is_command(&message.subject) {
            self.ready.push_back(message);
        } else {
            self.passed_over.extend(message.reply);
        }
        Ok(())
    }

    fn end_request(&mut self, reply: &Subject, status: StatusCode, description: &str) -> Result<(), BrokerError> {
        // A status of any other request is of one that was given up, or that has brought everything.
        let Some(open) = self.open.take_if(|open| open.reply == *reply) else { return Ok(()) };
        match ending(status, description, open.has_brought) {
            Ending::Over => Ok(()),
            Ending::Full => {
                self.open = Some(Open { over_by: Instant::now() + END_LATE_MAX, ..open });
                Ok(())
            }
            Ending::Failed(error) => Err(error),
        }
    }

    async fn request(&mut self, max: usize) -> Result<Instant, BrokerError> {
        self.requests += 1;
        let reply = Subject::from(format!("{}.{}", self.inbox, self.requests));
        let Limits { batch, bytes, lives } = self.limits;
        let left = max.min(batch);
        let wish = BatchConfig { batch: left, expires: Some(lives), max_bytes: bytes, ..BatchConfig::default() };
        let wish = serde_json::to_vec(&wish).map_err(|error| away(&error.to_string()))?;
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{COMMANDS}.{CONSUMER}");
        self.client.publish_with_reply(subject, reply.clone(), wish.into()).await.map_err(|error| away(&error.to_string()))?;
        let over_by = Instant::now() + lives + END_LATE_MAX;
        self.open = Some(Open { reply, left, has_brought: false, over_by });
        Ok(over_by)
    }

    /// Acknowledges the messages that were passed over. One that is missed here is met again. Is safe to cancel: an
    /// acknowledgement leaves the list only once it was handed to the client.
    async fn forget_passed_over(&mut self) {
        while let Some(reply) = self.passed_over.last().cloned() {
            if let Err(error) = self.client.publish(reply, AckKind::Ack.into()).await {
                tracing::debug!(%error, "messages that are not commands could not be acknowledged");
            }
            self.passed_over.pop();
        }
    }
}

/// Whether the subject is that of a command. Dead letters lie in the same stream, and a stream that the operator has made may
/// take even more.
fn is_command(subject: &str) -> bool {
    subject.starts_with(COMMANDS_PREFIX) && subject != DEAD_SUBJECT
}

fn connections(client: &Client) -> u64 {
    client.statistics().connects.load(Ordering::Relaxed)
}

fn away(text: &str) -> BrokerError {
    BrokerError::Away(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_asks_for_no_more_than_the_consumer_allows() {
        let limits = |change: fn(&mut consumer::Config), largest| {
            let mut consumer = consumer::Config::default();
            change(&mut consumer);
            Limits::of(&consumer, largest)
        };
        let usual = Limits { batch: usize::MAX, bytes: 16 << 20, lives: Duration::from_secs(1) };
        let millis = Duration::from_millis(200);
        assert_eq!(limits(|_| {}, 1 << 20), usual);
        assert_eq!(limits(|_| {}, 64 << 20), Limits { bytes: 128 << 20, ..usual });
        assert_eq!(limits(|consumer| consumer.max_batch = 10, 1 << 20), Limits { batch: 10, ..usual });
        assert_eq!(limits(|consumer| consumer.max_bytes = 1 << 20, 1 << 20), Limits { bytes: 1 << 20, ..usual });
        assert_eq!(
            limits(|consumer| consumer.max_expires = Duration::from_millis(200), 1 << 20),
            Limits { lives: millis, ..usual }
        );
        assert_eq!(limits(|consumer| consumer.max_expires = Duration::from_secs(60), 1 << 20), usual);
    }

    #[test]
    fn only_commands_are_handed_out() {
        for (subject, expected) in [
            ("timer.commands.schedule", true),
            ("timer.commands.a.b", true),
            ("timer.commands.dead", false),
            ("timer.commands.dead.x", true),
            ("timer.commands", false),
            ("timer.events.due.acme", false),
        ] {
            assert_eq!(is_command(subject), expected, "{subject}");
        }
    }

    #[test]
    fn the_end_of_a_request_is_understood() {
        let conflict = StatusCode::try_from(409_u16).unwrap();
        for (status, description, has_brought, expected) in [
            (StatusCode::TIMEOUT, "Request Timeout", false, "over"),
            (StatusCode::NOT_FOUND, "No Messages", false, "over"),
            (conflict, "Message Size Exceeds MaxBytes", true, "over"),
            (conflict, "Batch Completed", true, "full"),
            (conflict, "Batch Completed", false, "full"),
            (conflict, "Message Size Exceeds MaxBytes", false, "the broker refuses: it does not hand out commands: 409"),
            (conflict, "Consumer Deleted", false, "the broker is away: it ended a request for commands: Consumer Deleted"),
            (conflict, "Leadership Change", true, "the broker is away: it ended"),
            (conflict, "Server Shutdown", false, "the broker is away: it ended"),
            (conflict, "Consumer is push based", false, "the broker refuses: it does not hand out commands: 409"),
            (conflict, "Exceeded MaxRequestBatch of 1", false, "the broker refuses: it does not hand out commands: 409"),
            (StatusCode::NO_RESPONDERS, "", false, "the broker is away: the consumer is not there"),
        ] {
            let text = match ending(status, description, has_brought) {
                Ending::Over => "over".to_owned(),
                Ending::Full => "full".to_owned(),
                Ending::Failed(error) => error.to_string(),
            };
            assert!(text.starts_with(expected), "{description}: {text}");
        }
    }
}
