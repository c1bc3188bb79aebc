use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A token that is looked at only when it was cancelled. To ask a token takes locks that all connections share, and a connection would
/// ask whenever anything happens on it.
pub(super) struct Signal(FuturesUnordered<WaitForCancellationFutureOwned>);

impl Signal {
    pub(super) fn of(token: CancellationToken) -> Self {
        Self(FuturesUnordered::from_iter([token.cancelled_owned()]))
    }

    /// Whether the token was just found to be cancelled: true once.
    pub(super) fn poll_rise(&mut self, cx: &mut Context<'_>) -> bool {
        !self.0.is_empty() && self.0.poll_next_unpin(cx).is_ready()
    }

    /// Works until the end of the work or of the time.
    pub(super) async fn cut_off(mut self, work: impl Future<Output = ()>) {
        let mut work = pin!(work);
        poll_fn(|cx| if self.poll_rise(cx) { Poll::Ready(()) } else { work.as_mut().poll(cx) }).await;
    }
}
