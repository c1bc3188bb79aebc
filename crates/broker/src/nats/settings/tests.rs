use async_nats::jetstream::consumer::IntoConsumerConfig;

use super::*;

#[test]
fn what_we_make_raises_no_doubts() {
    assert_eq!(doubts_about_stream(&commands(), &commands()), Vec::<String>::new());
    assert_eq!(doubts_about_stream(&events(), &events()), Vec::<String>::new());
    assert_eq!(doubts_about_consumer(&consumer().into_consumer_config(), &consumer()), Vec::<String>::new());
}

#[test]
fn a_stream_that_keeps_at_least_as_much_raises_no_doubts() {
    let ours = commands();
    for found in [
        stream::Config { max_age: Duration::ZERO, ..ours.clone() },
        stream::Config { max_age: KEPT_FOR * 2, ..ours.clone() },
        stream::Config { duplicate_window: DUPLICATES_KNOWN_FOR * 2, ..ours.clone() },
        stream::Config { max_messages: UNLIMITED, max_bytes: UNLIMITED, ..ours.clone() },
        stream::Config { max_bytes: 1 << 30, discard: DiscardPolicy::New, ..ours.clone() },
        stream::Config { num_replicas: 3, description: None, allow_rollup: true, ..ours.clone() },
        stream::Config { subjects: vec!["other".to_owned(), "timer.>".to_owned()], ..ours.clone() },
    ] {
        assert_eq!(doubts_about_stream(&found, &ours), Vec::<String>::new(), "{found:?}");
    }
}

#[test]
fn each_doubt_about_a_stream_names_the_setting() {
    let ours = commands();
    let subjects = |subject: &str| stream::Config { subjects: vec![subject.to_owned()], ..commands() };
    for (found, doubt) in [
        (subjects("timer.commands.*"), "subjects do not include timer.commands.>"),
        (subjects("timer.commands.schedule"), "subjects do not include timer.commands.>"),
        (stream::Config { subjects: Vec::new(), ..commands() }, "subjects do not include timer.commands.>"),
        (stream::Config { retention: RetentionPolicy::WorkQueue, ..commands() }, "retention is not limits"),
        (stream::Config { retention: RetentionPolicy::Interest, ..commands() }, "retention is not limits"),
        (stream::Config { storage: StorageType::Memory, ..commands() }, "storage is not file"),
        (stream::Config { max_age: DAY, ..commands() }, "max_age is 86400s"),
        (stream::Config { duplicate_window: Duration::from_secs(120), ..commands() }, "duplicate_window is 120s"),
        (stream::Config { max_messages: 1000, ..commands() }, "max_msgs is 1000 with discard old"),
        (stream::Config { max_bytes: 1000, ..commands() }, "max_bytes is 1000 with discard old"),
        (stream::Config { max_messages_per_subject: 1, ..commands() }, "max_msgs_per_subject is 1 with discard old"),
        (stream::Config { no_ack: true, ..commands() }, "no_ack is set"),
        (stream::Config { sealed: true, ..commands() }, "it is sealed"),
    ] {
        let doubts = doubts_about_stream(&found, &ours);
        assert!(matches!(&doubts[..], [only] if only.starts_with(doubt)), "{doubt}: {doubts:?}");
    }
}

#[test]
fn a_single_copy_is_a_doubt_on_a_cluster() {
    let on_cluster = stream::Config { num_replicas: 3, ..commands() };
    let doubts = doubts_about_stream(&commands(), &on_cluster);
    assert!(matches!(&doubts[..], [only] if only.starts_with("num_replicas is 1 on a cluster")), "{doubts:?}");
}

#[test]
fn each_doubt_about_a_consumer_names_the_setting() {
    let with = |change: fn(&mut consumer::Config)| {
        let mut found = consumer().into_consumer_config();
        change(&mut found);
        found
    };
    for (found, doubt) in [
        (with(|found| found.ack_policy = AckPolicy::None), "ack_policy is not explicit"),
        (with(|found| found.ack_wait = Duration::from_secs(30)), "ack_wait is 30s"),
        (with(|found| found.max_deliver = 5), "max_deliver is 5"),
        (with(|found| found.max_ack_pending = 1000), "max_ack_pending is 1000"),
        (with(|found| found.filter_subject = "timer.commands.a".to_owned()), "filter_subject leaves out"),
        (with(|found| found.filter_subjects = vec!["timer.commands.*".to_owned()]), "filter_subject leaves out"),
        (with(|found| found.deliver_policy = DeliverPolicy::New), "deliver_policy is not all"),
        (with(|found| found.headers_only = true), "headers_only is set"),
        (with(|found| found.inactive_threshold = DAY), "inactive_threshold is set"),
        (with(|found| found.backoff = vec![DAY]), "backoff is set"),
        (with(|found| found.memory_storage = true), "mem_storage is set"),
    ] {
        let doubts = doubts_about_consumer(&found, &consumer());
        assert!(matches!(&doubts[..], [only] if only.starts_with(doubt)), "{doubt}: {doubts:?}");
    }
    for found in [
        with(|found| found.max_ack_pending = UNLIMITED),
        with(|found| found.max_ack_pending = 100_000),
        with(|found| found.filter_subject = "timer.>".to_owned()),
        with(|found| found.max_batch = 10),
        with(|found| found.num_replicas = 3),
    ] {
        assert_eq!(doubts_about_consumer(&found, &consumer()), Vec::<String>::new(), "{found:?}");
    }
}

#[test]
fn a_pattern_covers_what_it_matches_altogether() {
    for (pattern, subject, expected) in [
        (">", "timer.commands.>", true),
        ("timer.>", "timer.commands.>", true),
        ("*.commands.>", "timer.commands.>", true),
        ("timer.commands.>", "timer.commands.>", true),
        ("timer.commands.*", "timer.commands.>", false),
        ("timer.commands", "timer.commands.>", false),
        ("timer.commands.>", "timer.>", false),
        ("timer.commands.dead.>", "timer.commands.>", false),
        ("timer.events.>", "timer.commands.>", false),
        ("a.*", "a.b", true),
        ("a.*", "a.b.c", false),
        ("a.b", "a.b", true),
        ("a.b.>", "a.b", false),
    ] {
        assert_eq!(covers(pattern, subject), expected, "{pattern} {subject}");
    }
}
