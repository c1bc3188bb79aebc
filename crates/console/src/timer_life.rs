//! The life of a timer as a line: created, changed, due, attempts, end, with what lies between.

use domain::{Attempt, Status, Timer, Timestamp};
use maud::{Markup, html};

use crate::{
    chart::{self, Moment},
    text::{self, exact_time},
    timer_attempts::{next_attempt, result},
    visitor::Visitor,
};

pub(crate) fn life(visitor: &Visitor, timer: &Timer, attempts: &[Attempt]) -> Markup {
    html! { header { h2 { "Life" } } div.body { (chart::life(&moments(visitor, timer, attempts))) } }
}

fn moments(visitor: &Visitor, timer: &Timer, attempts: &[Attempt]) -> Vec<Moment> {
    let at = |name: &str, at: Timestamp, class| Moment { name: name.to_owned(), at, below: exact_time(visitor, at), class };
    let mut moments = vec![at("created", timer.created_at, "done")];
    let ended = timer.status.is_finished().then_some(()).and(timer.executed_at);
    if timer.revision > 1 && timer.updated_at != timer.created_at && Some(timer.updated_at) != ended {
        moments.push(at(&format!("changed, revision {}", timer.revision), timer.updated_at, "done"));
    }
    if let Some(pause) = &timer.pause {
        moments.push(at("paused", pause.at, "warn"));
    }
    let is_over = timer.status.is_finished() || timer.attempt > 0 || timer.status == Status::Executing;
    moments.push(at("due", timer.execute_at, if is_over { "done" } else { "next" }));
    moments.extend(attempts.iter().map(|attempt| of_attempt(timer, attempt)));
    if let Some(next) = next_attempt(timer, attempts) {
        let below = html! { "about " (exact_time(visitor, next)) };
        moments.push(Moment { name: format!("attempt {}", timer.attempt + 1), at: next, below, class: "next" });
    }
    if timer.status.is_finished() {
        let class = match (timer.executed_at, timer.status) {
            (None, _) => "done",
            (_, Status::Completed) => "good",
            _ => "bad",
        };
        moments.push(at(timer.status.as_str(), timer.executed_at.unwrap_or(timer.updated_at), class));
    }
    moments
}

fn of_attempt(timer: &Timer, attempt: &Attempt) -> Moment {
    let late = text::span(attempt.started_at.since(timer.execute_at));
    Moment {
        name: format!("attempt {}", attempt.number),
        at: attempt.started_at,
        below: html! { (result(attempt)) br; "took " (text::span(attempt.took)) br; (late) " after due" },
        class: if attempt.outcome == "delivered" { "good" } else { "bad" },
    }
}
