use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::jetstream::{consumer, stream};
use broker::announce;
use throwaway::Nats;
use tracing_subscriber::fmt::MakeWriter;

use crate::rig::{COMMANDS, EVENTS, Process, Witness, command, until};

/// The lines that are logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn warnings(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(" WARN ") && line.contains("broker::")).map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn what_is_made_has_the_settings_that_keep_messages() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    for (name, subjects) in [(COMMANDS, "timer.commands.>"), (EVENTS, "timer.events.>")] {
        let config = witness.stream(name).await.unwrap().config;
        assert_eq!(config.subjects, [subjects]);
        assert_eq!((config.storage, config.retention), (stream::StorageType::File, stream::RetentionPolicy::Limits));
        assert_eq!(config.max_age, Duration::from_secs(30 * 24 * 3600));
        assert_eq!((config.duplicate_window, config.discard), (Duration::from_secs(600), stream::DiscardPolicy::Old));
    }
    let config = witness.consumer().await.unwrap().config;
    assert_eq!((config.ack_policy, config.ack_wait), (consumer::AckPolicy::Explicit, Duration::from_secs(20)));
    assert_eq!((config.max_deliver, config.max_ack_pending), (-1, 4096));
    assert_eq!(config.deliver_policy, consumer::DeliverPolicy::All);
    process.stop().await;
}

#[tokio::test]
async fn what_the_operator_has_made_is_used_as_it_is_with_one_warning() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    let theirs = stream::Config {
        name: COMMANDS.to_owned(),
        subjects: vec!["timer.>".to_owned()],
        storage: stream::StorageType::Memory,
        max_messages: 100_000,
        ..stream::Config::default()
    };
    let stream = witness.context.create_stream(theirs).await.unwrap();
    let theirs = consumer::pull::Config {
        durable_name: Some("timer".to_owned()),
        max_deliver: 7,
        max_batch: 10,
        max_expires: Duration::from_millis(500),
        ..consumer::pull::Config::default()
    };
    stream.create_consumer(theirs.clone()).await.unwrap();
    let (stream_before, consumer_before) =
        (witness.stream(COMMANDS).await.unwrap().config, witness.consumer().await.unwrap().config);

    let process = Process::start(&nats.url());
    witness.send_all((0..100).map(|n| command(&n.to_string()))).await;
    process.until_timers(100).await;
    // The operator's stream takes the events too, so that ours cannot be made. The consumer meets them, and does not take them
    // for commands.
    let timer = process.timer("7").await.unwrap();
    announce(&*process.broker, &timer, 1, None, timer.execute_at).await.unwrap();
    assert_eq!(witness.messages(COMMANDS, "timer.events.due.acme", 1).await.len(), 1);
    witness.until_settled().await;
    assert_eq!((witness.count(COMMANDS).await, witness.stream(EVENTS).await.is_none()), (101, true));
    assert_eq!(witness.stream(COMMANDS).await.unwrap().config, stream_before);
    assert_eq!(witness.consumer().await.unwrap().config, consumer_before);
    // Everything is checked again, and no new doubt is found.
    stream.delete_consumer("timer").await.unwrap();
    stream.create_consumer(theirs).await.unwrap();
    witness.send(command("more")).await;
    until(async || process.timer("more").await.is_some()).await;
    process.stop().await;

    let about_theirs: Vec<_> =
        log.warnings().into_iter().filter(|line| line.contains("was not set up by this service")).collect();
    let [commands, events, consumer] = &about_theirs[..] else { panic!("{about_theirs:#?}") };
    for doubt in ["TIMER_COMMANDS", "storage is not file", "max_msgs is 100000"] {
        assert!(commands.contains(doubt), "{commands}");
    }
    assert!(events.contains("the stream TIMER_EVENTS could not be made"), "{events}");
    assert!(consumer.contains("max_deliver is 7"), "{consumer}");
}
