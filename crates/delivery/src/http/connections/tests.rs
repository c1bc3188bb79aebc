use std::future::pending;

use futures_util::FutureExt;
use rustls::RootCertStore;

use super::*;
use crate::{
    Egress,
    http::{Lookups, Names, SystemNames, connect_limiter::CONNECTS_PENDING_MAX, names::Lookup, tests::Receiver},
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const TIMEOUT: Duration = Duration::from_secs(30);

fn request() -> Request<Full<Bytes>> {
    Request::post("/").header("host", "a").body(Full::default()).unwrap()
}

fn tenant() -> TenantId {
    TenantId::of(&domain::Namespace::default())
}

fn connections(names: impl Names + 'static) -> Connections {
    Connections::new(Connector::new(Egress::default(), Lookups::new(names), RootCertStore::empty()).unwrap())
}

/// Never finds anything.
struct Silent;

impl Names for Silent {
    fn lookup(&self, _: String) -> Lookup {
        Box::pin(pending())
    }
}

#[tokio::test]
async fn no_call_holds_a_connect_permit_while_the_name_is_looked_up() {
    let (connections, place) = (connections(Silent), Uri::from_static("http://slow.example/"));
    let mut waiting: Vec<_> = (0..CONNECTS_PENDING_MAX).map(|_| Box::pin(connections.checkout(&place, tenant()))).collect();
    assert!(waiting.iter_mut().all(|checkout| checkout.now_or_never().is_none()));
    assert!(connections.connect_limiter.permit(&Origin::of(&place)).now_or_never().is_some());
}

#[tokio::test]
async fn a_connection_that_waited_for_too_long_before_the_call_is_not_used() {
    let mut receiver = Receiver::answering(OK).await;
    let (connections, place) = (connections(SystemNames), receiver.url("/").parse::<Uri>().unwrap());
    let call = async |checkout| connections.send(&place, tenant(), checkout, request(), TIMEOUT).await.unwrap().connection;
    let first = call(connections.checkout(&place, tenant()).await).await;
    let long_ago = Instant::now() - 2 * IDLE_MAX;
    call(Checkout::Idle(IdleConnection { connection: first, since: long_ago })).await;
    assert_eq!(receiver.connections().await, 2);
}

#[tokio::test]
async fn a_call_that_waits_for_a_connect_permit_takes_a_connection_that_comes_free() {
    let mut receiver = Receiver::answering(OK).await;
    let (connections, place) = (connections(SystemNames), receiver.url("/").parse::<Uri>().unwrap());
    let origin = Origin::of(&place);
    let call = async |checkout| connections.send(&place, tenant(), checkout, request(), TIMEOUT).await.unwrap().connection;
    let first = call(connections.checkout(&place, tenant()).await).await;

    let mut permits = Vec::new();
    for _ in 0..CONNECTS_PENDING_MAX {
        permits.push(connections.connect_limiter.permit(&origin).await);
    }
    let mut next = pin!(connections.checkout(&place, tenant()));
    let mut last = pin!(connections.checkout(&place, tenant()));
    assert!(next.as_mut().now_or_never().is_none() && last.as_mut().now_or_never().is_none());
    connections.keep(first).await;
    permits.pop();
    call(next.await).await;
    assert_eq!(receiver.connections().await, 1);
    call(last.await).await;
    assert_eq!(receiver.connections().await, 1, "one more, since none was idle");
}
