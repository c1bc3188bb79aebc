//! Keeps the inbox open: subscribes to it, probes it over every new connection, and takes in what comes.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    PublishError,
    inbox::{Need, State},
    link::Link,
    metrics,
};

const TICK: Duration = Duration::from_secs(1);
/// After how many ticks something that did not work is tried again.
const RETRY_TICKS: u32 = 5;

/// Waits until what is needed can come, over a connection that stands. An error when that is not so, as far as is known.
pub(crate) async fn ready(link: &Link, need: Need) -> Result<(), PublishError> {
    let mut states = link.inbox.states();
    let mut changes = link.events.changes();
    loop {
        states.mark_unchanged();
        changes.mark_unchanged();
        if link.is_away() {
            return Err(PublishError::NotConnected);
        }
        if link.is_up() && link.inbox.is_open(need) {
            return Ok(());
        }
        if let Some(refusal) = link.inbox.refusal(need) {
            return Err(refusal.into());
        }
        // Neither of them ends while there is a link.
        tokio::select! {
            _ = states.changed() => {}
            _ = changes.changed() => {}
        }
    }
}

/// Takes in what comes, for as long as there is a client.
pub(crate) async fn listen(link: Arc<Link>) {
    let inbox = &link.inbox;
    let mut state = inbox.states();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Ok(mut messages) = link.client.subscribe(inbox.subject()).await {
        state.mark_changed();
        let mut ticks = 0;
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => inbox.take(link.number(), message),
                    None => return,
                },
                _ = state.changed() => {
                    ticks = 0;
                    if *state.borrow_and_update() == State::Opening {
                        send_probe(&link).await;
                    }
                }
                _ = tick.tick() => {
                    ticks += 1;
                    if check(&link, ticks) {
                        break;
                    }
                }
            }
        }
        inbox.ask_again();
    }
}

/// Sends a message to ourselves; it opens the inbox when it comes back.
async fn send_probe(link: &Link) {
    let address = link.inbox.expect_probe(link.number());
    // It fails only when the client has ended, and then no publish is waiting.
    let _ = link.client.publish(address, Bytes::new()).await;
}

/// Makes up for events that got lost, and tries again what was refused. True when the subscription is to be made again.
fn check(link: &Link, ticks: u32) -> bool {
    let inbox = &link.inbox;
    let is_up = link.is_up();
    metrics::connected(link.name, is_up);
    let state = inbox.state();
    let is_stale = inbox.probed_over() != link.number();
    let is_retry_due = ticks.is_multiple_of(RETRY_TICKS);
    match state {
        State::Down if is_up => inbox.connected(),
        State::Down => {}
        _ if !is_up => {
            inbox.disconnected();
            link.events.nudge();
        }
        State::Opening | State::AnswersOnly if is_retry_due => inbox.connected(),
        State::Refused => return is_retry_due,
        _ if is_stale => inbox.connected(),
        _ => {}
    }
    false
}
