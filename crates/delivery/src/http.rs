//! The sender of `http` callbacks: one POST over HTTP/1.1 and an answer within the callback's timeout.

mod answer;
mod connect;
mod connect_limiter;
mod connections;
mod error_chain;
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
use async_trait::async_trait;
use domain::{Callback, CallbackKind, Clock, Endpoint, HttpEndpoint, Invalid, Namespace, Protocol, TenantId, Timer};
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
use crate::{Egress, Failure, FailureKind, Outcome, Prepared, Sender, SetupError, answer::Answer, call::Call};

/// How long the head of an answer may be. hyper stops reading only some way beyond this limit, so the head that was read is
/// measured again. hyper itself refuses more than 100 headers.
const ANSWER_HEAD_BYTES_MAX: usize = 64 * 1024;

pub(crate) struct HttpSender {
    connections: Connections,
    egress: Egress,
    agent: HeaderValue,
    clock: Arc<dyn Clock>,
}

/// A connection to a receiver for one call, or the permit to open one.
struct PreparedHttp {
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
        let connector = Connector::new(egress.clone(), lookups, roots)?;
        Ok(Self { connections: Connections::new(connector), egress, agent, clock })
    }

    /// The same, with at most `idle_connections_max` idle connections.
    pub fn keeping(mut self, idle_connections_max: Option<usize>) -> Self {
        self.connections = self.connections.keeping(idle_connections_max);
        self
    }

    async fn check_out(&self, endpoint: &HttpEndpoint, tenant: TenantId) -> Result<PreparedHttp, ::http::Error> {
        let to = Uri::try_from(endpoint.url.as_str())?;
        let by = self.connections.checkout(&to, tenant).await;
        Ok(PreparedHttp { to, tenant, by })
    }

    async fn post(&self, endpoint: &HttpEndpoint, call: &Call<'_>, prepared: Prepared) -> Answer {
        let place = Place(&endpoint.url);
        let prepared = match prepared.take() {
            Some(prepared) => Ok(prepared),
            None => self.check_out(endpoint, TenantId::of(&call.timer.definition.namespace)).await,
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
            return Answer { status, ..Outcome::from(place.long_head()).into() };
        }
        let headers = if call.answer_bytes_max > 0 { answer::kept_headers(response.headers()) } else { Vec::new() };
        let taking = async {
            match endpoint.protocol {
                Protocol::Webhook => self.take_webhook(response, place, deadline, call).await,
                Protocol::Timer => timeout_at(deadline, self.take_timer(response, place, deadline, call))
                    .await
                    .unwrap_or_else(|_| (place.late(endpoint.timeout).into(), Vec::new())),
            }
        };
        let (outcome, body) = connection.drive(taking).await;
        self.connections.keep(connection).await;
        Answer { outcome, status, headers, body }
    }

    async fn take_webhook(
        &self,
        response: Response<Incoming>,
        place: Place<'_>,
        deadline: Instant,
        call: &Call<'_>,
    ) -> (Outcome, Vec<u8>) {
        let outcome = if response.status().is_success() { Outcome::Delivered } else { self.refusal(&response, place).into() };
        let kept_max = answer::kept_max(call, &outcome);
        let body = answer::discard(response.into_body(), deadline, kept_max).await;
        (outcome, body)
    }

    async fn take_timer(
        &self,
        response: Response<Incoming>,
        place: Place<'_>,
        deadline: Instant,
        call: &Call<'_>,
    ) -> (Outcome, Vec<u8>) {
        if response.status() != StatusCode::OK {
            let refusal = self.refusal(&response, place).into();
            let kept_max = answer::kept_max(call, &refusal);
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

#[async_trait]
impl Sender for HttpSender {
    fn kind(&self) -> CallbackKind {
        CallbackKind::Http
    }

    /// An address that callbacks may not reach is refused as far as the URL itself shows it: names are looked up for the call.
    fn check(&self, _: &Namespace, callback: &Callback) -> Result<(), Invalid> {
        let Endpoint::Http(endpoint) = &callback.endpoint else { return Ok(()) };
        let checked = self.egress.check_literal(&endpoint.url);
        checked.map_err(|denied| Invalid::new("callback.url", format!("must not be called: {denied}")))
    }

    async fn prepare(&self, timer: &Timer) -> Prepared {
        let Endpoint::Http(endpoint) = &timer.definition.callback.endpoint else { return Prepared::default() };
        // Why nothing could be checked out, the attempt finds out again.
        let checkout = self.check_out(endpoint, TenantId::of(&timer.definition.namespace)).await;
        checkout.map(Prepared::new).unwrap_or_default()
    }

    async fn send(&self, call: &Call<'_>, prepared: Prepared) -> Answer {
        match &call.timer.definition.callback.endpoint {
            Endpoint::Http(endpoint) => self.post(endpoint, call, prepared).await,
            _ => Answer::misdirected(self.kind()),
        }
    }
}
