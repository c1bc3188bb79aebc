//! The settings with which streams and consumer are created, and how those that the operator has made may differ. Pure.

use std::time::Duration;

use async_nats::jetstream::{
    consumer::{self, AckPolicy, DeliverPolicy},
    stream::{self, DiscardPolicy, RetentionPolicy, StorageType},
};

pub(super) const COMMANDS: &str = "TIMER_COMMANDS";
pub(crate) const COMMANDS_SUBJECTS: &str = "timer.commands.>";
pub(super) const COMMANDS_PREFIX: &str = "timer.commands.";
/// The subject of dead letters. It is one of the subjects of the command stream, so the consumer meets them again.
pub(super) const DEAD_SUBJECT: &str = "timer.commands.dead";

pub(super) const EVENTS: &str = "TIMER_EVENTS";
pub(crate) const EVENTS_SUBJECTS: &str = "timer.events.>";
/// The prefix of event subjects, followed by the tenant.
pub(super) const DUE_SUBJECT: &str = "timer.events.due";

/// The name of the durable consumer. All processes share it, and each gets a part of the commands.
pub(super) const CONSUMER: &str = "timer";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const KEPT_FOR: Duration = Duration::from_secs(30 * DAY.as_secs());
/// The duplicate window: longer than a take-over of shards by another node plus the repeated publish of an event.
const DUPLICATES_KNOWN_FOR: Duration = Duration::from_secs(10 * 60);
/// The ack wait: a store may take ten seconds for a batch, and five more to find out what became of it.
const VERDICT_WITHIN: Duration = Duration::from_secs(20);
/// The most commands without a verdict: enough for eight processes with a batch each. Commands that await redelivery count too.
pub(super) const WITHOUT_VERDICT_MAX: i64 = 4096;
const UNLIMITED: i64 = -1;

pub(super) fn commands() -> stream::Config {
    stream(COMMANDS, COMMANDS_SUBJECTS, "Commands to the timer platform, and those that can never work")
}

pub(super) fn events() -> stream::Config {
    stream(EVENTS, EVENTS_SUBJECTS, "Events of the timer platform")
}

fn stream(name: &str, subjects: &str, description: &str) -> stream::Config {
    stream::Config {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        subjects: vec![subjects.to_owned()],
        storage: StorageType::File,
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        max_age: KEPT_FOR,
        duplicate_window: DUPLICATES_KNOWN_FOR,
        num_replicas: 1,
        ..stream::Config::default()
    }
}

pub(super) fn consumer() -> consumer::pull::Config {
    consumer::pull::Config {
        durable_name: Some(CONSUMER.to_owned()),
        description: Some("The command consumer of the timer platform".to_owned()),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: VERDICT_WITHIN,
        max_deliver: UNLIMITED,
        max_ack_pending: WITHOUT_VERDICT_MAX,
        ..consumer::pull::Config::default()
    }
}

/// The settings of a stream that may lose messages which a stream of ours would keep, or keep them from us. Empty when there
/// are none.
pub(super) fn doubts_about_stream(found: &stream::Config, wanted: &stream::Config) -> Vec<String> {
    let mut doubts = Vec::new();
    for subject in &wanted.subjects {
        if !found.subjects.iter().any(|pattern| covers(pattern, subject)) {
            doubts.push(format!("subjects do not include {subject}"));
        }
    }
    if found.retention != RetentionPolicy::Limits {
        doubts.push("retention is not limits: what one consumer has read is gone for all".to_owned());
    }
    if found.storage != StorageType::File {
        doubts.push("storage is not file: a restart loses everything".to_owned());
    }
    if !found.max_age.is_zero() && found.max_age < wanted.max_age {
        doubts.push(format!("max_age is {:?}: what waits longer is lost ({:?} is advised)", found.max_age, wanted.max_age));
    }
    if found.duplicate_window < wanted.duplicate_window {
        let (found, wanted) = (found.duplicate_window, wanted.duplicate_window);
        doubts.push(format!("duplicate_window is {found:?}: later repetitions are kept ({wanted:?} is advised)"));
    }
    let limits = [
        ("max_msgs", found.max_messages),
        ("max_bytes", found.max_bytes),
        ("max_msgs_per_subject", found.max_messages_per_subject),
    ];
    if let Some((limit, value)) = limits.into_iter().find(|(_, value)| *value > 0)
        && found.discard == DiscardPolicy::Old
    {
        doubts.push(format!("{limit} is {value} with discard old: messages that were not read yet may be dropped"));
    }
    if found.num_replicas < wanted.num_replicas {
        let (found, wanted) = (found.num_replicas, wanted.num_replicas);
        doubts.push(format!("num_replicas is {found} on a cluster: a server that is lost takes it along ({wanted} is advised)"));
    }
    if found.no_ack {
        doubts.push("no_ack is set: nothing that is published can be confirmed".to_owned());
    }
    if found.sealed {
        doubts.push("it is sealed: it takes no messages".to_owned());
    }
    doubts
}

/// The same for the consumer.
pub(super) fn doubts_about_consumer(found: &consumer::Config, wanted: &consumer::pull::Config) -> Vec<String> {
    let mut doubts = Vec::new();
    if found.ack_policy != AckPolicy::Explicit {
        doubts.push("ack_policy is not explicit: commands count as done before they are".to_owned());
    }
    if found.ack_wait != wanted.ack_wait {
        let (found, wanted) = (found.ack_wait, wanted.ack_wait);
        doubts.push(format!("ack_wait is {found:?}: what a process left behind comes again after that ({wanted:?} is advised)"));
    }
    if found.max_deliver > 0 {
        doubts.push(format!("max_deliver is {}: a command that fails so often is lost", found.max_deliver));
    }
    if (1..wanted.max_ack_pending).contains(&found.max_ack_pending) {
        let (found, wanted) = (found.max_ack_pending, wanted.max_ack_pending);
        doubts.push(format!("max_ack_pending is {found}: few failing commands stop all others ({wanted} is advised)"));
    }
    let filters: Vec<_> =
        [&found.filter_subject].into_iter().chain(&found.filter_subjects).filter(|text| !text.is_empty()).collect();
    if !filters.is_empty() && !filters.iter().any(|pattern| covers(pattern, COMMANDS_SUBJECTS)) {
        doubts.push(format!("filter_subject leaves out some of {COMMANDS_SUBJECTS}"));
    }
    if found.deliver_policy != DeliverPolicy::All {
        doubts.push("deliver_policy is not all: commands from before it was made are left out".to_owned());
    }
    if found.headers_only {
        doubts.push("headers_only is set: commands come without their bodies".to_owned());
    }
    if !found.inactive_threshold.is_zero() {
        doubts.push("inactive_threshold is set: after a pause it is gone, and all commands come again".to_owned());
    }
    if !found.backoff.is_empty() {
        doubts.push("backoff is set: it takes the place of ack_wait".to_owned());
    }
    if found.memory_storage {
        doubts.push("mem_storage is set: after a restart of the server all commands come again".to_owned());
    }
    doubts
}

/// Whether `pattern` matches every subject that `subject` stands for.
fn covers(pattern: &str, subject: &str) -> bool {
    let (mut pattern, mut subject) = (pattern.split('.'), subject.split('.'));
    loop {
        match (pattern.next(), subject.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(token)) if token != ">" => {}
            (Some(pattern), Some(token)) if pattern == token => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests;
