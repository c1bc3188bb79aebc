//! When attempts are made: those that were, and those that would follow if they fail. Drawn as marks on a line of time.

use domain::{RetryPolicy, Span};
use maud::{Markup, html};

use crate::{
    chart::{self, Mark},
    text,
};

/// More attempts than this are told and not drawn.
const DRAWN_MAX: u32 = 24;
/// How many pauses are told one by one.
const TOLD_MAX: u32 = 6;

/// The attempts that would follow one another if all of them fail, from the due time.
#[derive(Debug, PartialEq)]
pub(crate) struct Planned {
    /// Number and time after the due time of those that are drawn.
    pub(crate) attempts: Vec<(u32, Span)>,
    /// How many there are besides. `None`: without end.
    pub(crate) more: Option<u32>,
}

impl Planned {
    /// The attempts planned after attempt number `made`, which ended `ended` after the due time.
    pub(crate) fn after(policy: &RetryPolicy, made: u32, ended: Span) -> Self {
        let last = policy.max_retries.saturating_add(1);
        let mut at = ended;
        let mut attempts = Vec::new();
        for number in made + 1..=last.min(made.saturating_add(DRAWN_MAX)) {
            if number > 1 {
                at = Span::from_micros_clamped(at.as_micros().saturating_add(policy.interval_after(number - 1).as_micros()));
            }
            if policy.max_duration.is_some_and(|longest| number > 1 && at > longest) {
                return Self { attempts, more: Some(0) };
            }
            attempts.push((number, at));
        }
        let more = if policy.max_retries == u32::MAX { None } else { Some(last.saturating_sub(made + attempts.len() as u32)) };
        Self { attempts, more }
    }

    /// In words: how many, and when the last of them is made.
    fn told(&self) -> String {
        let count = self.attempts.len() as u64;
        let pauses =
            self.attempts.iter().skip(1).take(TOLD_MAX as usize).map(|(_, at)| text::span(*at)).collect::<Vec<_>>().join(", ");
        let rest = if count > 7 || self.more != Some(0) { ", …" } else { "" };
        match self.more {
            _ if count <= 1 => "One attempt, and no retry.".to_owned(),
            None => format!("Attempts without end: when it is due, then {pauses}{rest} after it."),
            Some(more) => {
                let all = text::number(count + u64::from(more));
                format!(
                    "Up to {all} attempts: when it is due, then {pauses}{rest} after it. Each pause is up to 10 % shorter or longer."
                )
            }
        }
    }
}

/// A policy in one line: how many retries, and how long after which attempt.
pub(crate) fn summary(policy: &RetryPolicy) -> String {
    match *policy {
        RetryPolicy { max_retries: 0, .. } => "none".to_owned(),
        RetryPolicy { max_retries: u32::MAX, max_interval, .. } => {
            format!("without end, at most {} apart", text::span(max_interval))
        }
        RetryPolicy { max_retries, max_duration, .. } => {
            let told = (1..=max_retries.min(TOLD_MAX)).map(|attempt| text::span(policy.interval_after(attempt)));
            let more = if max_retries > TOLD_MAX { ", …" } else { "" };
            let limit = max_duration.map(|span| format!(", not later than {} after due", text::span(span))).unwrap_or_default();
            format!("{max_retries}, after {}{more}{limit}", told.collect::<Vec<_>>().join(", "))
        }
    }
}

/// What a policy means, for a timer that has not been called yet.
pub(crate) fn of_policy(policy: &RetryPolicy) -> Markup {
    let planned = Planned::after(policy, 0, Span::ZERO);
    let marks: Vec<Mark> = planned.attempts.iter().map(|(number, at)| planned_mark(*number, *at)).collect();
    html! {
        @if marks.len() > 1 { (chart::moments("Attempts by the time after the due time", &marks)) }
        p.hint { (planned.told()) }
    }
}

/// A mark for an attempt that would be made then.
pub(crate) fn planned_mark(number: u32, at: Span) -> Mark {
    Mark { at, class: "next", title: format!("Attempt {number}, about {} after due", text::span(at)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> RetryPolicy {
        RetryPolicy::from_json(json).unwrap()
    }

    fn seconds(planned: &Planned) -> Vec<i64> {
        planned.attempts.iter().map(|(_, at)| at.as_micros() / 1_000_000).collect()
    }

    #[test]
    fn attempts_follow_the_policy() {
        let planned = Planned::after(&policy(r#"{"max_retries":4,"max_interval":"1m"}"#), 0, Span::ZERO);
        assert_eq!((seconds(&planned), planned.more), (vec![0, 30, 90, 150, 210], Some(0)));
        assert!(
            planned
                .told()
                .starts_with("Up to 5 attempts: when it is due, then 30 s, 1 min 30 s, 2 min 30 s, 3 min 30 s after it.")
        );
        let left = Planned::after(&policy(r#"{"max_retries":3}"#), 2, Span::from_secs(31));
        assert_eq!((left.attempts[0].0, seconds(&left)), (3, vec![91, 211]));
        let limited = Planned::after(&policy(r#"{"max_retries":9,"max_duration":"2m"}"#), 0, Span::ZERO);
        assert_eq!((seconds(&limited), limited.more), (vec![0, 30, 90], Some(0)));
    }

    #[test]
    fn many_attempts_are_told_and_not_drawn() {
        let planned = Planned::after(&policy(r#"{"max_retries":1000}"#), 0, Span::ZERO);
        assert_eq!((planned.attempts.len(), planned.more), (24, Some(977)));
        assert!(planned.told().starts_with("Up to 1,001 attempts"), "{}", planned.told());
        assert_eq!(Planned::after(&RetryPolicy::FOR_EVER, 7, Span::ZERO).more, None);
        assert_eq!(Planned::after(&policy(r#"{"max_retries":0}"#), 0, Span::ZERO).told(), "One attempt, and no retry.");
        assert!(Planned::after(&policy(r#"{"max_retries":1}"#), 2, Span::ZERO).attempts.is_empty());
    }
}
