use std::{panic::AssertUnwindSafe, sync::Arc};

use delivery::{Attempted, Outcome};
use domain::{Attempt, Next, Span, Timer, TimerId, Timestamp, TraceContext};
use futures_util::FutureExt;
use store::{ClaimToken, Claimed, Settlement, is_let_expire};
use tokio_util::sync::CancellationToken;

use crate::{Deliver, Pipeline, follow_up::FollowUp, recorder::CallEnd};

/// What became of a claimed timer.
struct Delivered {
    next: Next,
    /// What is to be remembered of the attempt.
    attempt: Option<Attempt>,
    /// How late the call was, if there was one.
    late: Option<Span>,
    /// The trace that the call belongs to.
    trace: Option<Arc<TraceContext>>,
}

impl Delivered {
    const fn without_call(next: Next) -> Self {
        Self { next, attempt: None, late: None, trace: None }
    }
}

impl<D: Deliver> Pipeline<D> {
    /// Delivers one claimed timer, whatever happens on the way, gives its permit back, and says what is to be recorded.
    pub(crate) async fn deliver(&self, claimed: Claimed, stop: &CancellationToken) -> Settlement {
        // A panic must not leave a timer `executing` for ever, nor keep its permit.
        let Delivered { next, attempt, late, trace } =
            AssertUnwindSafe(self.next_of(&claimed, stop)).catch_unwind().await.unwrap_or_else(|_| {
                let error = "internal error while delivering; see the log".to_owned();
                Delivered::without_call(Next::Failed { at: self.clock.now(), error })
            });
        let is_retry = is_retry(&next, claimed.attempt);
        if is_retry {
            self.metrics.retries(1);
        }
        let namespace = claimed.timer.as_ref().ok().map(|timer| &timer.definition.namespace);
        self.metrics.recorder.ended(namespace, self.clock.now(), late, &next, is_retry);
        log(&claimed, &next, trace.as_deref(), self.timer_page.as_deref());
        // Its permit is free: a follow-up that waits for the store must not hold up the calls of other timers.
        self.scheduler.called(&claimed.entry);
        let follow_up = claimed.timer.as_ref().ok().and_then(|timer| FollowUp::of(timer, &next, claimed.attempt));
        if let Some(follow_up) = follow_up {
            // Boxed, because it is rare and every delivery would carry its state.
            Box::pin(self.register_until_stored(follow_up)).await;
        }
        Settlement { attempt, ..claimed.settle(next) }
    }

    /// What becomes of the timer, with what is remembered of the call if there was one.
    async fn next_of(&self, claimed: &Claimed, stop: &CancellationToken) -> Delivered {
        let timer = match &claimed.timer {
            Ok(timer) => timer,
            Err(unreadable) => {
                tracing::error!(timer.id = %claimed.entry.id, %unreadable, "a stored timer cannot be read");
                return Delivered::without_call(delivery::unreadable(unreadable, self.clock.now()));
            }
        };
        let prepared = self.deliverer.prepare(timer).await;
        // The last look before the call: a node that was paused must not call in the name of shards it has lost. While
        // the store is away this waits, unless the service stops: then the timer goes back as if it had not been claimed.
        let may_send = tokio::select! {
            biased;
            may_send = self.scheduler.may_send(claimed.shard_lease) => may_send,
            () = stop.cancelled() => false,
        };
        let now = self.clock.now();
        // The clock was set back if it is early.
        if !may_send || now < claimed.entry.at {
            let attempt = claimed.attempt.saturating_sub(1);
            let error = timer.last_error.clone();
            return Delivered::without_call(Next::Pending { at: claimed.entry.at, attempt, error });
        }
        if let Some(late) = self.too_late(timer, claimed, now) {
            return Delivered::without_call(late);
        }
        let late = now.since(claimed.entry.at);
        let call = self.metrics.recorder.call(&timer.definition, now);
        let started = self.clock.monotonic();
        let Attempted { outcome, record, trace } = self.deliverer.attempt(timer, claimed.attempt, prepared).await;
        let took = self.clock.monotonic().saturating_sub(started);
        let now = self.clock.now();
        let jitter = jitter(claimed.token, claimed.entry.id);
        let decide = |outcome| {
            let interval_min = self.retry_interval_min;
            delivery::decide(outcome, timer, &self.namespaces, interval_min, claimed.attempt, now, jitter)
        };
        // One that this machine could not start is counted as that, by the deliverer.
        if matches!(outcome, Outcome::NotAttempted { .. }) {
            return Delivered { attempt: record, trace, ..Delivered::without_call(decide(outcome)) };
        }
        self.metrics.fired(late);
        let failure = match &outcome {
            Outcome::Failed(failure) => Some(failure.reason().to_owned()),
            _ => None,
        };
        let next = decide(outcome);
        let retry_at = match &next {
            Next::Pending { at, .. } => Some(*at),
            _ => None,
        };
        call.end(&CallEnd { at: now, took, failure: failure.as_deref(), retry_at });
        Delivered { next, attempt: record, late: Some(late), trace }
    }

    /// A timer that has expired: because its client let it expire, by its own expiry, or, where it has none, because it is later than the
    /// operator wants it. For the operator retries are not late: they follow their policy, or are what the client wants now. Events
    /// are never too late: a command may have waited long, and its sender waits for the event.
    fn too_late(&self, timer: &Timer, claimed: &Claimed, now: Timestamp) -> Option<Next> {
        if let Some(error) = timer.last_error.as_ref().filter(|error| is_let_expire(error)) {
            return Some(Next::Expired { at: now, error: error.clone(), is_called: false });
        }
        if let Some(expires_at) = timer.expires_at() {
            let error = || delivery::expired(timer.last_error.as_deref(), expires_at);
            return (now >= expires_at).then(|| Next::Expired { at: now, error: error(), is_called: false });
        }
        let window = self.overdue_window.filter(|_| !timer.definition.callback.is_event())?;
        let late = now.since(claimed.entry.at);
        (claimed.attempt <= 1 && late > window).then(|| {
            tracing::warn!(timer.id = %timer.id(), %late, "a timer is later than OVERDUE_WINDOW allows");
            let error = format!("overdue by {late}, more than OVERDUE_WINDOW ({window}) allows");
            Next::Expired { at: now, error, is_called: false }
        })
    }
}

/// Whether the attempt with this number failed and is made again. A timer that goes back without a call has the number before it.
pub(crate) const fn is_retry(next: &Next, attempt: u32) -> bool {
    matches!(next, Next::Pending { attempt: counted, .. } if *counted >= attempt)
}

/// A pseudo-random number from 0 to below 1, the same for the same claim: retries of timers that failed together are spread in time.
fn jitter(token: ClaimToken, id: TimerId) -> f64 {
    let mixed = (token.0.cast_unsigned() ^ id.as_uuid().as_u64_pair().1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

fn log(claimed: &Claimed, next: &Next, trace: Option<&TraceContext>, timer_page: Option<&str>) {
    let (id, attempt) = (claimed.entry.id, claimed.attempt);
    let definition = claimed.timer.as_ref().ok().map(|timer| &timer.definition);
    let correlation_id = definition.and_then(|definition| definition.correlation_id.as_ref()).map(tracing::field::display);
    let trace_id = || trace.map(TraceContext::trace_id_text);
    let span_id = || trace.map(TraceContext::span_id_text);
    // The receiver without its path, which may hold a token; `last_error` has it, for those who may read the timer.
    let receiver = || definition.map(|definition| definition.callback.receiver()).unwrap_or_default();
    let console = || timer_page.map(|page| format!("{page}{id}"));
    match next {
        Next::Completed { .. } => {
            tracing::debug!(timer.id = %id, timer.attempt = attempt, trace_id = trace_id(), span_id = span_id(), correlation_id, receiver = receiver(), "delivered");
        }
        Next::Again { at } => {
            tracing::debug!(timer.id = %id, timer.attempt = attempt, trace_id = trace_id(), span_id = span_id(), correlation_id, receiver = receiver(), %at, "delivered; the receiver asked to be called again");
        }
        Next::Pending { at, attempt: counted, .. } if *counted < attempt => {
            tracing::debug!(timer.id = %id, timer.attempt = attempt, trace_id = trace_id(), span_id = span_id(), correlation_id, %at, "given back without a call");
        }
        // Tried for ever, perhaps by the thousand: the connection itself is logged.
        Next::Pending { at, error: Some(_), .. }
            if attempt > 1 && definition.is_some_and(|definition| definition.callback.is_event()) =>
        {
            tracing::debug!(timer.id = %id, timer.attempt = attempt, trace_id = trace_id(), span_id = span_id(), correlation_id, %at, "the event could not be published; trying again later");
        }
        Next::Pending { at, .. } => {
            tracing::info!(timer.id = %id, timer.attempt = attempt, trace_id = trace_id(), span_id = span_id(), correlation_id, receiver = receiver(), %at, "delivery failed; trying again later");
        }
        Next::Expired { .. } => {
            tracing::warn!(timer.id = %id, timer.attempt = attempt, trace_id = trace_id(), span_id = span_id(), correlation_id, receiver = receiver(), console = console(), "expired; its last_error says why")
        }
        Next::Failed { .. } | Next::GivenUp { .. } => {
            tracing::warn!(timer.id = %id, timer.attempt = attempt, trace_id = trace_id(), span_id = span_id(), correlation_id, receiver = receiver(), console = console(), "failed; its last_error says why")
        }
    }
}

#[cfg(test)]
mod tests;
