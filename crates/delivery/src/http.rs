//! The sender of `http` callbacks: one POST over HTTP/1.1 and an answer within the callback's timeout.

mod answer;
mod connect;
mod connect_limiter;
mod connections;
mod failure;
mod intake;
mod lookups;
mod names;
mod origin;
mod request;
pub(crate) mod roots;
mod shortage;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::http::{HeaderValue, Response, StatusCode, Uri};
use domain::{AttemptLog, Clock, HttpEndpoint, Protocol, TenantId};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use self::{
    connect::Connector,
    connections::{Answered, Checkout, Connections},
    failure::Place,
};
pub(crate) use self::{
    lookups::Lookups,
    names::{Names, SystemNames},
};
use crate::{Egress, Failure, FailureKind, Outcome, SetupError, answer::Answer, call::Call};

/// Of the head of an answer. hyper stops reading somewhere behind it, so what has been read is measured, too.
/// At most 100 headers are taken as well: that is hyper's own limit.
const ANSWER_HEAD_BYTES_MAX: usize = 64 * 1024;

pub(crate) struct HttpSender {
    connections: Connections,
    agent: HeaderValue,
    clock: Arc<dyn Clock>,
}

/// To a receiver, open for one call.
pub(crate) struct PreparedHttp {
    to: Uri,
    tenant: TenantId,
    by: Checkout,
}

impl HttpSender {
    pub fn new(
        egress: Egress,
        version: &str,
        clock: Arc<dyn Clock>,
        lookups: Lookups,
        roots: rustls::RootCertStore,
    ) -> Result<Self, SetupError> {
        let agent = HeaderValue::try_from(format!("timer-platform/{version}")).map_err(|_| SetupError::Version)?;
        let connector = Connector::new(egress, lookups, roots)?;
        Ok(Self { connections: Connections::new(connector), agent, clock })
    }

    /// The same, with at most so many idle connections.
    pub fn keeping(mut self, idle_connections_max: Option<usize>) -> Self {
        self.connections = self.connections.keeping(idle_connections_max);
        self
    }

    /// Waits until a call can be sent there. It is no time of the receiver's that passes, so no timeout counts it.
    pub async fn prepare(&self, endpoint: &HttpEndpoint, tenant: TenantId) -> Result<PreparedHttp, ::http::Error> {
        let to = Uri::try_from(endpoint.url.as_str())?;
        let by = self.connections.checkout(&to, tenant).await;
        Ok(PreparedHttp { to, tenant, by })
    }

    /// Without a way, finds one first.
    pub async fn send(&self, endpoint: &HttpEndpoint, call: &Call<'_>, prepared: Option<PreparedHttp>) -> Answer {
        let place = Place(&endpoint.url);
        let prepared = match prepared {
            Some(prepared) => Ok(prepared),
            None => self.prepare(endpoint, TenantId::of(&call.timer.definition.namespace)).await,
        };
        let written = prepared.and_then(|prepared| Ok((request::write(endpoint, call, &self.agent, &prepared.to)?, prepared)));
        let (request, PreparedHttp { to, tenant, by }) = match written {
            Ok(written) => written,
            Err(error) => return Outcome::from(place.failure(FailureKind::Request, format!("cannot be sent: {error}"))).into(),
        };
        let Answered { response, mut connection, deadline } =
            match self.connections.send(&to, tenant, by, request, endpoint.timeout.as_duration()).await {
                Ok(answered) => answered,
                Err(error) => return place.explain(&error, endpoint.timeout).into(),
            };
        let status = Some(response.status().as_u16());
        if answer::head_bytes(response.headers()) > ANSWER_HEAD_BYTES_MAX {
            return Answer { outcome: place.long_head().into(), status, body: Vec::new() };
        }
        let taking = async {
            match endpoint.protocol {
                Protocol::Webhook => self.take_webhook(response, place, deadline, call.attempt_log).await,
                Protocol::Timer => timeout_at(deadline, self.take_timer(response, place, deadline, call.attempt_log))
                    .await
                    .unwrap_or_else(|_| (place.late(endpoint.timeout).into(), Vec::new())),
            }
        };
        let (outcome, body) = connection.drive(taking).await;
        self.connections.keep(connection).await;
        Answer { outcome, status, body }
    }

    async fn take_webhook(
        &self,
        response: Response<Incoming>,
        place: Place<'_>,
        deadline: Instant,
        attempt_log: AttemptLog,
    ) -> (Outcome, Vec<u8>) {
        let outcome = if response.status().is_success() { Outcome::Delivered } else { self.refusal(&response, place).into() };
        let kept_max = answer::kept_max(attempt_log, &outcome);
        let body = answer::discard(response.into_body(), deadline, kept_max).await;
        (outcome, body)
    }

    async fn take_timer(
        &self,
        response: Response<Incoming>,
        place: Place<'_>,
        deadline: Instant,
        attempt_log: AttemptLog,
    ) -> (Outcome, Vec<u8>) {
        if response.status() != StatusCode::OK {
            let refusal = self.refusal(&response, place).into();
            let kept_max = answer::kept_max(attempt_log, &refusal);
            let body = answer::discard(response.into_body(), deadline, kept_max).await;
            return (refusal, body);
        }
        let failed = |kind, reason: String| (place.failure(kind, reason).into(), Vec::new());
        match answer::read(response.into_body()).await {
            Ok(body) => {
                let understood = answer::understand(&body);
                (understood.unwrap_or_else(|complaint| place.failure(FailureKind::Answer, complaint).into()), body)
            }
            Err(answer::Unread::TooLarge) => failed(
                FailureKind::TooLarge,
                format!("answered with more than {} bytes or {} pieces", answer::ANSWER_BYTES_MAX, answer::ANSWER_PIECES_MAX),
            ),
            Err(answer::Unread::Lost) => failed(FailureKind::Reset, "closed the connection within its answer".to_owned()),
        }
    }

    fn refusal(&self, response: &Response<Incoming>, place: Place<'_>) -> Failure {
        let retry_after = answer::retry_after(response.headers(), self.clock.now());
        Failure { retry_after, ..place.status(response.status()) }
    }
}
