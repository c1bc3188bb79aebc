use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    net::IpAddr,
    pin::Pin,
    sync::Arc,
};

use axum::{Router, body::Body, extract::Request, response::Response};
use http::{HeaderValue, header};
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{
    admission::{Admitted, Scope},
    count_refused, refusal,
    signal::Signal,
    strict_reader::{RequestInFlight, StrictReader},
};
use crate::{BasePath, Connected, Limits, dialect::ApiDialect, error::ApiError, limits};

/// What is answered when nothing else is.
const PROBES: [&str; 2] = ["/healthz", "/ping"];

/// The API and the path under which it is.
pub(super) struct Routed {
    pub router: Router,
    pub base_path: BasePath,
}

/// Serves one connection to its end; on `shutdown`, to the end of the request in flight.
pub(super) async fn serve(
    socket: TcpStream,
    address: IpAddr,
    routed: Routed,
    granted: Limits,
    admitted: Admitted,
    shutdown: CancellationToken,
) {
    let Routed { router, base_path } = routed;
    let (in_flight, scope) = (admitted.in_flight.clone(), admitted.scope);
    let granted = match scope {
        Scope::Everything => granted,
        Scope::Probes => Limits { head_time_max: limits::RESERVED_TIME_MAX, idle_time_max: limits::RESERVED_TIME_MAX, ..granted },
    };
    let strict_reader = StrictReader::new(socket, granted, in_flight.clone(), base_path.clone());
    let connected = Connected { address, stopping: shutdown.clone() };
    let routes = Routes { router: router.clone(), base_path, in_flight: in_flight.clone(), scope, connected };
    let mut connection = http1::Builder::new()
        // The strict reader keeps the times and counts the headers, and hands on no head that is not whole and right.
        .header_read_timeout(None)
        // Neither does it read while a request is being answered, so that there is nothing to look for then.
        .half_close(true)
        .max_buf_size(limits::READ_AHEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(strict_reader), routes);
    let mut stopping = Signal::of(shutdown);
    let result = poll_fn(|cx| {
        if stopping.poll_rise(cx) {
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(cx)
    })
    .await;
    let (socket, fault) = connection.into_parts().io.into_inner().into_parts();
    match (result, fault) {
        (_, Some(fault)) => in_flight.stay_for(refusal::send(socket, router, fault)).await,
        (Ok(()), None) => in_flight.stay_for(refusal::linger(socket)).await,
        (Err(error), None) => tracing::debug!(%error, "a connection ended early"),
    }
}

/// The API as the HTTP implementation wants it.
struct Routes {
    router: Router,
    base_path: BasePath,
    in_flight: Arc<RequestInFlight>,
    scope: Scope,
    connected: Connected,
}

impl Routes {
    /// What the API is asked: the request, or in its place one that is refused for want of permits.
    fn admitted(&self, mut request: Request<Incoming>) -> Request {
        let path = self.base_path.behind(request.uri().path().as_bytes()).unwrap_or_default();
        if self.scope == Scope::Probes && !PROBES.iter().any(|probe| probe.as_bytes() == path) {
            count_refused();
            return ApiDialect::of_bytes(path).synthetic_request(ApiError::TooManyConnections);
        }
        request.extensions_mut().insert(self.connected.clone());
        request.map(Body::new)
    }
}

impl Service<Request<Incoming>> for Routes {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let is_last = self.scope == Scope::Probes || request.headers().contains_key(header::TRANSFER_ENCODING);
        // A router is always ready.
        let answering = tower::Service::call(&mut self.router.clone(), self.admitted(request));
        let in_flight = self.in_flight.clone();
        Box::pin(async move {
            let mut answer = answering.await;
            if is_last && let Ok(response) = &mut answer {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            in_flight.end();
            answer
        })
    }
}
