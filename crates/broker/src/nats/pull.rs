//! Fetching commands: one request at a time, each for a second.
//!
//! ```text
//!   us       ──"512, for 1 s"──▶            ──"512, for 1 s"──▶
//!   server                      m m m m m …                    m m … (1 s) "over"
//! ```
//!
//! Because a request ends so soon, nothing else needs to be known about it: not whether the server still has it after a
//! reconnect, and not whether one that is not wanted any more still brings something. What does not end in time is lost together
//! with its server. The next request leaves as soon as the last one is used up, so that commands travel while others are worked on.

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
    settings::{COMMANDS, COMMANDS_PREFIX, CONSUMER, DEAD_SUBJECT},
    setup,
};
use crate::BrokerError;

const REQUEST_LIVES: Duration = Duration::from_secs(1);
/// How much later than that its end may be heard of.
const END_LATE_MAX: Duration = Duration::from_secs(2);
/// What one request may bring, unless one message alone may be larger.
const REQUEST_BYTES_MAX: usize = 16 << 20;
const MESSAGES_OF_LARGEST_SIZE_MIN: usize = 2;
/// How soon a lost connection is noticed once there is another.
const LOSS_NOTICED_WITHIN: Duration = Duration::from_millis(200);

/// What is being fetched, until there is trouble.
pub(super) struct Pull {
    context: Context,
    client: Client,
    /// The number of the connection that all this goes over: servers forget requests together with connections.
    connection: u64,
    inbox: String,
    messages: Subscriber,
    limits: Limits,
    requests: u64,
    open: Option<Open>,
    /// Fetched, and not handed out.
    ready: VecDeque<Message>,
    /// Met in the stream, none of our business, and not acknowledged yet.
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

/// What a message without a command means for the request that it answers.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    /// Its time is over, or it brought what it could.
    Over,
    /// All that it wanted has left. In a cluster this may overtake what it announces.
    Full,
    Failed(BrokerError),
}

/// Reads a status of the server.
fn ending(status: StatusCode, description: &str, has_brought: bool) -> Ending {
    match (status, description) {
        (StatusCode::TIMEOUT | StatusCode::NOT_FOUND, _) => Ending::Over,
        (StatusCode::NO_RESPONDERS, _) => Ending::Failed(BrokerError::Away("the consumer is not there".into())),
        (_, "Batch Completed") => Ending::Full,
        // More than the request wanted is waiting.
        (_, "Message Size Exceeds MaxBytes") if has_brought => Ending::Over,
        (_, "Consumer Deleted" | "Leadership Change" | "Server Shutdown") => {
            Ending::Failed(BrokerError::Away(format!("it ended a request for commands: {description}").into()))
        }
        _ => Ending::Failed(BrokerError::Refused(format!("it does not hand out commands: {status} {description}").into())),
    }
}

impl Pull {
    pub(super) async fn begin(client: Client, consumer: &consumer::Config) -> Result<Self, BrokerError> {
        let context = setup::context(&client);
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

    /// Waits for commands, until a request ends: when it brings none, that is an answer too. Can be canceled: what it has fetched
    /// stays here. After an error nothing is left here to be had.
    pub(super) async fn next(&mut self, max: usize) -> Result<Vec<jetstream::Message>, BrokerError> {
        loop {
            // Asked first, for then all that came over the lost connection is heard.
            let is_lost = connections(&self.client) != self.connection;
            let heard = self.hear(max);
            self.forget_passed_over().await;
            // What came before the trouble is not part of it.
            if !self.ready.is_empty() {
                if heard.is_ok() && !is_lost && self.open.is_none() {
                    // Whether that goes well concerns the next call.
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

    /// Waits until nothing more comes, and gives back what was not handed out. Then the server has heard everything that it was told.
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
        // A server answers in the order in which it is told: whoever has this answer knows that all the rest was heard.
        setup::find_consumer(&self.context).await.map(drop)
    }

    /// Takes what has arrived, as much as is wanted.
    fn hear(&mut self, max: usize) -> Result<(), BrokerError> {
        while self.ready.len() < max
            && let Some(message) = self.messages.next().now_or_never()
        {
            self.take(message.ok_or_else(|| away("the NATS client has ended"))?)?;
        }
        Ok(())
    }

    fn take(&mut self, message: Message) -> Result<(), BrokerError> {
        // A command may have a status as well, which means nothing. It comes under its own subject.
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
        // Anything else concerns a request that was given up, or that has brought everything.
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

    /// Acknowledges what was passed over. What is missed here is met again. Can be canceled: an acknowledgement is taken off the list
    /// only once it was handed over.
    async fn forget_passed_over(&mut self) {
        while let Some(reply) = self.passed_over.last().cloned() {
            if let Err(error) = self.client.publish(reply, AckKind::Ack.into()).await {
                tracing::debug!(%error, "what was passed over could not be acknowledged");
            }
            self.passed_over.pop();
        }
    }
}

/// Dead letters lie in the stream that they came from. A stream that somebody else has made may take even more.
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
