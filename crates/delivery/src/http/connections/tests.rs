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
    let request = || Request::post("/").header("host", "a").body(Full::default()).unwrap();
    let origin = Origin::of(&place);
    let (_, first) = connections.send(&place, request()).await.unwrap();

    let mut turns = Vec::new();
    for _ in 0..NEW_MAX {
        turns.push(connections.newcomers.turn(&origin).await);
    }
    let mut waiting = pin!(connections.send(&place, request()));
    assert!(waiting.as_mut().now_or_never().is_none());
    connections.keep(first).await;
    turns.pop();
    let (_, again) = waiting.await.unwrap();
    assert_eq!(receiver.connections().await, 1);

    let mut waiting = pin!(connections.send(&place, request()));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(again);
    turns.pop();
    waiting.await.unwrap();
    assert_eq!(receiver.connections().await, 1, "one more, since none came free");
}
