//! Creates the streams and the consumer when they are missing.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_nats::{
    Client,
    jetstream::{
        Context, ErrorCode, consumer,
        context::CreateStreamErrorKind,
        stream::{self, ConsumerCreateStrictErrorKind},
    },
};
use domain::Cause;
use tokio::time::Instant;

use super::{
    jetstream_api::{context, find, find_consumer},
    listening, settings,
};
use crate::{BrokerError, PlatformSubjects};

/// How long a finding is reused: when a stream is missing, all pending publishes ask at once.
const FINDING_HOLDS: Duration = Duration::from_secs(1);
/// On a cluster a stream has to survive the loss of one server.
const REPLICAS_ON_CLUSTER: usize = 3;

type Finding = (Instant, Result<(), BrokerError>);

#[derive(Default)]
pub(super) struct Setup {
    platform: PlatformSubjects,
    /// The last finding about the event stream.
    events: tokio::sync::Mutex<Option<Finding>>,
    /// The doubts that were logged already, by the name of the stream or consumer.
    complaints: Mutex<HashMap<&'static str, Vec<String>>>,
}

impl Setup {
    pub(super) fn new(platform: PlatformSubjects) -> Self {
        Self { platform, ..Self::default() }
    }

    /// Ensures both streams and the consumer, and returns the consumer's configuration.
    pub(super) async fn everything(&self, client: &Client) -> Result<consumer::Config, BrokerError> {
        let context = context(client);
        self.stream(&context, settings::COMMANDS, settings::commands()).await?;
        match self.stream(&context, settings::EVENTS, settings::events()).await {
            // Commands can be consumed all the same: each publish of an event looks for the stream again.
            Err(error @ BrokerError::Refused(_)) => self.complain(settings::EVENTS, &[error.to_string()]),
            other => other?,
        }
        self.consumer(&context).await
    }

    /// Ensures the event stream alone.
    pub(super) async fn events(&self, client: &Client) -> Result<(), BrokerError> {
        let mut finding = self.events.lock().await;
        if let Some((at, found)) = &*finding
            && at.elapsed() < FINDING_HOLDS
        {
            return found.clone();
        }
        let found = self.stream(&context(client), settings::EVENTS, settings::events()).await;
        *finding = Some((Instant::now(), found.clone()));
        found
    }

    async fn stream(&self, context: &Context, name: &'static str, wanted: stream::Config) -> Result<(), BrokerError> {
        let is_cluster = context.client().server_info().cluster.is_some();
        let num_replicas = if is_cluster { REPLICAS_ON_CLUSTER } else { 1 };
        let wanted = stream::Config { num_replicas, ..wanted };
        let found: Option<stream::Info> = find(context, format!("STREAM.INFO.{name}")).await?;
        match found {
            Some(found) => {
                let subjects = listening::subjects(context, &found.config).await;
                self.platform.learn(name, subjects.iter().map(String::as_str));
                self.complain(name, &settings::doubts_about_stream(&found.config, &wanted));
            }
            None => create_stream(context, &wanted).await?,
        }
        Ok(())
    }

    async fn consumer(&self, context: &Context) -> Result<consumer::Config, BrokerError> {
        let (stream, name) = (settings::COMMANDS, settings::CONSUMER);
        if let Some(found) = find_consumer(context).await? {
            if found.config.deliver_subject.is_some() {
                let rule = "the consumer timer of TIMER_COMMANDS is a push consumer: delete it, and a pull consumer will be made";
                return Err(BrokerError::Refused(rule.into()));
            }
            self.complain(name, &settings::doubts_about_consumer(&found.config, &settings::consumer()));
            return Ok(found.config);
        }
        let created = context.create_consumer_strict_on_stream(settings::consumer(), stream).await;
        let created = created.map_err(|error| {
            let is_away =
                matches!(error.kind(), ConsumerCreateStrictErrorKind::TimedOut | ConsumerCreateStrictErrorKind::Request);
            not_made(is_away, Cause::new(format!("the consumer {name} of {stream} could not be made: {error}"), error))
        })?;
        tracing::info!(nats.stream = stream, nats.consumer = name, "made a consumer");
        Ok(created.cached_info().config.clone())
    }

    /// Logs once what is doubtful about a stream or consumer that the operator has made, and leaves it as it is.
    fn complain(&self, name: &'static str, doubts: &[String]) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if doubts.is_empty() {
            complaints.remove(name);
        } else if complaints.get(name).is_none_or(|earlier| earlier != doubts) {
            let doubts_text = doubts.join("; ");
            tracing::warn!(
                nats.name = name,
                doubts = doubts_text,
                "what was not set up by this service can lose messages, or keep them from us"
            );
            complaints.insert(name, doubts.to_vec());
        }
    }
}

const fn not_made(is_away: bool, cause: Cause) -> BrokerError {
    if is_away { BrokerError::Away(cause) } else { BrokerError::Refused(cause) }
}

async fn create_stream(context: &Context, wanted: &stream::Config) -> Result<(), BrokerError> {
    let name = wanted.name.as_str();
    let refusal = match context.create_stream(wanted).await {
        Ok(_) => {
            tracing::info!(nats.stream = name, nats.replicas = wanted.num_replicas, "made a stream");
            return Ok(());
        }
        Err(error) => error,
    };
    let lacks_servers = match refusal.kind() {
        CreateStreamErrorKind::JetStream(error) => is_lack_of_servers(error.error_code()),
        _ => false,
    };
    if wanted.num_replicas > 1 && lacks_servers {
        let single = stream::Config { num_replicas: 1, ..wanted.clone() };
        if context.create_stream(&single).await.is_ok() {
            tracing::warn!(nats.stream = name, error = %refusal, "made a stream with a single copy: the cluster cannot keep more");
            return Ok(());
        }
    }
    let is_away = matches!(refusal.kind(), CreateStreamErrorKind::TimedOut | CreateStreamErrorKind::Response);
    Err(not_made(is_away, Cause::new(format!("the stream {name} could not be made: {refusal}"), refusal)))
}

/// Whether the cluster has too few servers for the replicas. No other refusal is a reason to use fewer.
fn is_lack_of_servers(code: ErrorCode) -> bool {
    [ErrorCode::CLUSTER_NO_PEERS, ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED].contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_servers_is_a_reason_to_keep_a_single_copy() {
        for (code, expected) in [
            (ErrorCode::CLUSTER_NO_PEERS, true),
            (ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED, true),
            (ErrorCode::INSUFFICIENT_RESOURCES, false),
            (ErrorCode::STREAM_SUBJECT_OVERLAP, false),
            (ErrorCode::CLUSTER_NOT_AVAILABLE, false),
        ] {
            assert_eq!(is_lack_of_servers(code), expected, "{code:?}");
        }
    }

    #[test]
    fn silence_is_no_refusal() {
        assert!(matches!(not_made(true, "".into()), BrokerError::Away(_)));
        assert!(matches!(not_made(false, "".into()), BrokerError::Refused(_)));
    }
}
