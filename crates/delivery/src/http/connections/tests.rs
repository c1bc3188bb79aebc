use futures_util::FutureExt;
use rustls::RootCertStore;

use super::*;
use crate::{
    Egress,
    http::{Lookups, SystemNames, newcomers::NEW_MAX, tests::Receiver},
};

#[tokio::test]
async fn whoever_waits_for_its_turn_to_dial_takes_a_connection_that_comes_free() {
    let mut receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let connector = Connector::new(Egress::default(), Lookups::new(SystemNames), RootCertStore::empty()).unwrap();
    let (connections, place) = (Connections::new(connector), receiver.url("/").parse::<Uri>().unwrap());
    let origin = Origin::of(&place);
    let call = async |way| {
        let request = Request::post("/").header("host", "a").body(Full::default()).unwrap();
        connections.send(&place, way, request).await.unwrap().1
    };
    let first = call(connections.way(&place).await).await;

    let mut turns = Vec::new();
    for _ in 0..NEW_MAX {
        turns.push(connections.newcomers.turn(&origin).await);
    }
    let mut next = pin!(connections.way(&place));
    let mut last = pin!(connections.way(&place));
    assert!(next.as_mut().now_or_never().is_none() && last.as_mut().now_or_never().is_none());
    connections.keep(first).await;
    turns.pop();
    call(next.await).await;
    assert_eq!(receiver.connections().await, 1);
    call(last.await).await;
    assert_eq!(receiver.connections().await, 1, "one more, since none was kept");
}
