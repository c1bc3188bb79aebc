use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
};

use axum::{Router, body::Body, extract::Request, response::Response};
use http::{HeaderValue, header};
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{
    gate::{Flight, Gate},
    refusal,
};
use crate::Limits;

/// Serves one connection to its end; on `shutdown`, to the end of the request in flight.
pub(super) async fn serve(socket: TcpStream, router: Router, limits: Limits, shutdown: CancellationToken) {
    let flight = Arc::new(Flight::default());
    let gate = Gate::new(socket, limits, flight.clone());
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The gate keeps both times; together they bound what it may have missed.
        .header_read_timeout(limits.idle_time_max + limits.head_time_max)
        .max_headers(limits.headers_max)
        .serve_connection(TokioIo::new(gate), Routes { router: router.clone(), flight });
    let mut stopping = std::pin::pin!(shutdown.cancelled());
    let mut is_stopping = false;
    let result = poll_fn(|cx| {
        if !is_stopping && stopping.as_mut().poll(cx).is_ready() {
            is_stopping = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(cx)
    })
    .await;
    let (socket, fault) = connection.into_parts().io.into_inner().into_parts();
    match (result, fault) {
        (_, Some(fault)) => refusal::send(socket, router, fault).await,
        (Ok(()), None) => refusal::linger(socket).await,
        (Err(error), None) => tracing::debug!(%error, "a connection ended early"),
    }
}

/// The API as the HTTP implementation wants it.
struct Routes {
    router: Router,
    flight: Arc<Flight>,
}

impl Service<Request<Incoming>> for Routes {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let router = self.router.clone();
        let flight = self.flight.clone();
        Box::pin(async move {
            let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
            let mut answer = router.oneshot(request.map(Body::new)).await;
            if is_chunked && let Ok(response) = &mut answer {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            flight.end();
            answer
        })
    }
}
