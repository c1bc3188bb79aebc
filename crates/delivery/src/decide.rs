//! What follows an attempt. Pure: time and chance are arguments.

use domain::{Delivery, Next, RetryPolicy, Span, Timer, Timestamp, limits};
use store::{Claimed, Unreadable, is_let_expire};

use crate::{Failure, NamespaceRules, Outcome};

/// How far a waiting time is moved by chance, to both sides: receivers that failed together must not be called again together.
const JITTER: f64 = 0.1;
/// A receiver that asks to be called again is not called sooner than this, whatever time it names: one that always names a past
/// time would otherwise be called without a pause.
const AGAIN_DELAY_MIN: Span = Span::from_secs(1);

/// How long a call that this machine could not make waits for another try; chance moves it by a half to both sides.
const NOT_ATTEMPTED_DELAY: Span = Span::from_secs(1);

/// What becomes of `timer` after its attempt with this number (1 for the first) ended in `outcome` at `now`. The next one starts no
/// sooner than `interval_min` after it, whatever policy and receiver say. `jitter` is chance, from 0 up to 1.
pub fn decide(
    outcome: Outcome,
    timer: &Timer,
    rules: &NamespaceRules,
    interval_min: Span,
    attempt: u32,
    now: Timestamp,
    jitter: f64,
) -> Next {
    let next = match outcome {
        Outcome::Delivered => Next::Completed { at: now },
        Outcome::Rescheduled { at } => Next::Again { at: at.max(now.saturating_add(AGAIN_DELAY_MIN.max(interval_min))) },
        // No policy is asked: the receiver was not called, so the timer is as it was before its claim.
        Outcome::NotAttempted { .. } => Next::Pending {
            at: now.saturating_add(NOT_ATTEMPTED_DELAY.saturating_mul(0.5 + jitter.clamp(0.0, 1.0))),
            attempt: attempt.saturating_sub(1),
            error: timer.last_error.clone(),
        },
        Outcome::Failed(failure) => match rules.retries(&timer.definition) {
            None => Next::Failed { at: now, error: last_error(&failure.message, "") },
            // A caller who has it tried again, or changes it, wants it tried from then on.
            Some(policy) => {
                let wait = wait(&failure, &policy, attempt, jitter).max(shortest(interval_min, jitter));
                retry(&failure, &policy, timer.execute_at.max(timer.updated_at), attempt, now, wait)
            }
        },
    };
    unless_expired(next, timer, attempt, now)
}

/// A further attempt that would start at or after the expiry of the timer is not waited for: the timer has expired. `attempt` is
/// the number of the attempt that has ended.
fn unless_expired(next: Next, timer: &Timer, attempt: u32, now: Timestamp) -> Next {
    let starts_at = match &next {
        Next::Pending { at, .. } | Next::Again { at } => now.max(*at),
        Next::Completed { .. } | Next::Failed { .. } | Next::GivenUp { .. } | Next::Expired { .. } => return next,
    };
    // The receiver may have asked for a new due time, with which an expiry that counts from it moves.
    let execute_at = if let Next::Again { at } = next { at } else { timer.execute_at };
    let Some(expires_at) = timer.definition.options.expiry.map(|expiry| expiry.instant(execute_at)) else { return next };
    if starts_at < expires_at {
        return next;
    }
    match next {
        Next::Pending { attempt: counted, error, .. } => {
            Next::Expired { at: now, error: expired(error.as_deref(), expires_at), is_called: counted >= attempt }
        }
        _ => {
            let asked = format!("the receiver asked to be called again at {starts_at}");
            Next::Expired { at: now, error: expired(Some(&asked), expires_at), is_called: true }
        }
    }
}

/// What is kept of a timer that expires at this instant: why the attempt before failed, if there was one.
pub fn expired(last_error: Option<&str>, expires_at: Timestamp) -> String {
    match last_error {
        Some(error) => self::last_error(error, &format!("; expired: no attempt starts after expires_at {expires_at}")),
        None => format!("expired: no attempt starts after expires_at {expires_at}"),
    }
}

fn retry(failure: &Failure, policy: &RetryPolicy, due: Timestamp, attempt: u32, now: Timestamp, wait: Span) -> Next {
    let give_up = |why: String| Next::Failed { at: now, error: last_error(&failure.message, &why) };
    let attempts = if attempt == 1 { "1 attempt".to_owned() } else { format!("{attempt} attempts") };
    if attempt > policy.max_retries {
        return give_up(format!("; gave up after {attempts}"));
    }
    let at = now.saturating_add(wait);
    match policy.max_duration {
        Some(max) if at.as_micros().saturating_sub(due.as_micros()) > max.as_micros() => {
            give_up(format!("; gave up after {attempts}: the next would come later than max_duration {max} allows"))
        }
        _ => Next::Pending { at, attempt, error: Some(last_error(&failure.message, "")) },
    }
}

/// The policy's interval, moved by chance, or what the receiver asked for if that is longer and the policy allows it.
fn wait(failure: &Failure, policy: &RetryPolicy, attempt: u32, jitter: f64) -> Span {
    let factor = 1.0 + JITTER * (2.0 * jitter.clamp(0.0, 1.0) - 1.0);
    let interval = policy.interval_after(attempt).saturating_mul(factor);
    failure.retry_after.map_or(interval, |asked| interval.max(asked.min(policy.max_interval)))
}

/// Chance only makes it longer: it is a promise to the receiver.
fn shortest(interval_min: Span, jitter: f64) -> Span {
    interval_min.saturating_mul(1.0 + JITTER * jitter.clamp(0.0, 1.0))
}

/// What becomes of a timer whose claim no living node will settle: its node died, and whether the call was made is unknown.
///
/// It is made again whatever the retry policy says, but not for ever: it may be this call that takes the nodes down.
pub fn recover(claimed: &Claimed, rules: &NamespaceRules, now: Timestamp) -> Next {
    let timer = match &claimed.timer {
        Ok(timer) => timer,
        Err(reason) => return unreadable(reason, now),
    };
    // No call was made, and none is: the claim was there to end it.
    if let Some(error) = timer.last_error.as_ref().filter(|error| is_let_expire(error)) {
        return Next::Expired { at: now, error: error.clone(), is_called: false };
    }
    let attempt = claimed.attempt;
    let stopped = format!("the node of attempt {attempt} stopped before its result was recorded");
    let retries = rules.retries(&timer.definition).map_or(0, |policy| policy.max_retries);
    match timer.definition.delivery {
        Delivery::AtMostOnce => {
            Next::Failed { at: now, error: format!("{stopped}; with delivery at_most_once it is not made again") }
        }
        // How many of the attempts had no result is not kept, but those that had one are no more than the policy allows.
        Delivery::AtLeastOnce if attempt > retries.saturating_add(limits::RECOVERIES_MAX) => {
            let most = limits::RECOVERIES_MAX;
            Next::Failed {
                at: now,
                error: format!("{stopped}; gave up: that is more than {most} attempts beyond the retry policy"),
            }
        }
        Delivery::AtLeastOnce => {
            let again = Next::Pending { at: claimed.entry.at, attempt, error: Some(format!("{stopped}; it is made again")) };
            unless_expired(again, timer, attempt, now)
        }
    }
}

/// What becomes of a claimed timer that cannot be understood: it must not be claimed for ever.
pub fn unreadable(reason: &Unreadable, now: Timestamp) -> Next {
    Next::GivenUp { at: now, error: last_error(&format!("the stored timer cannot be read: {reason}"), "") }
}

/// Cuts the message, never the reason behind it, to what is kept of an error.
fn last_error(message: &str, ending: &str) -> String {
    let room = limits::LAST_ERROR_CHARS_MAX.saturating_sub(ending.chars().count());
    let end = message.char_indices().nth(room).map_or(message.len(), |(at, _)| at);
    format!("{}{ending}", &message[..end])
}

#[cfg(test)]
mod tests;
