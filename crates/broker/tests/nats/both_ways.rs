use std::time::Duration;

use broker::{Broker, BrokerError, announce};
use domain::{Namespace, Status, Timer};
use throwaway::Nats;

use crate::rig::{EVENTS, Process, Witness, command, header, in_an_hour, until};

#[tokio::test]
async fn a_command_becomes_a_timer_and_the_timer_an_event() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    let due_at = in_an_hour();
    witness
        .send(format!(
            r#"{{"id":"1","type":"ScheduleTimer","tenantId":"acme","correlationId":"c-1","timestampMs":1,
                "payload":{{"tenantId":"acme","serviceCallId":"call-1","dueAt":"{due_at}"}}}}"#
        ))
        .await;
    process.scheduled(1).await;
    let timer = process.timer("call-1").await.unwrap();
    assert_eq!((timer.execute_at, timer.status), (due_at, Status::Pending));
    assert_eq!(timer.definition.correlation_id.as_ref().unwrap().as_str(), "c-1");
    witness.until_settled().await;

    announce(&*process.broker, &timer, 2, None, timer.execute_at).await.unwrap();
    let events = witness.messages(EVENTS, "timer.events.due.acme", 1).await;
    let event: serde_json::Value = serde_json::from_slice(&events[0].payload).unwrap();
    assert_eq!((&event["type"], &event["id"]), (&"DueTimeReached".into(), &timer.webhook_id().into()));
    assert_eq!(event["payload"]["serviceCallId"], "call-1");
    for (name, value) in [
        ("Nats-Msg-Id", timer.webhook_id()),
        ("webhook-id", timer.webhook_id()),
        ("X-Timer-Id", timer.id().to_string()),
        ("X-Timer-Namespace", "acme".to_owned()),
        ("X-Timer-Attempt", "2".to_owned()),
        ("X-Timer-Scheduled-At", due_at.to_string()),
        ("X-Correlation-Id", "c-1".to_owned()),
    ] {
        assert_eq!(header(&events[0], name), Some(value.as_str()), "{name}");
    }
    process.stop().await;
}

#[tokio::test]
async fn a_repeated_event_is_kept_once() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send(command("a")).await;
    process.scheduled(1).await;
    let timer = process.timer("a").await.unwrap();
    for attempt in 1..=5 {
        announce(&*process.broker, &timer, attempt, None, timer.execute_at).await.unwrap();
    }
    let moved = Timer { execute_at: in_an_hour(), ..timer };
    announce(&*process.broker, &moved, 1, None, moved.execute_at).await.unwrap();
    assert_eq!(witness.count(EVENTS).await, 2);
    process.stop().await;
}

#[tokio::test]
async fn an_event_makes_its_stream_when_there_is_none() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send(command("a")).await;
    process.scheduled(1).await;
    let timer = process.timer("a").await.unwrap();
    witness.context.delete_stream(EVENTS).await.unwrap();
    announce(&*process.broker, &timer, 1, None, timer.execute_at).await.unwrap();
    assert_eq!(witness.count(EVENTS).await, 1);
    process.stop().await;
}

#[tokio::test]
async fn a_namespace_that_is_no_token_is_not_published() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send(command("a")).await;
    process.scheduled(1).await;
    let mut timer = process.timer("a").await.unwrap();
    for namespace in ["a b", "a.b", "*", ">", "é", "$SYS"] {
        timer.definition.namespace = Namespace::parse(namespace).unwrap();
        let error = announce(&*process.broker, &timer, 1, None, timer.execute_at).await.unwrap_err();
        assert!(matches!(error, BrokerError::Unpublishable(_)), "{namespace}: {error}");
    }
    assert_eq!(witness.count(EVENTS).await, 0);
    process.stop().await;
}

#[tokio::test]
async fn several_processes_share_the_commands() {
    let nats = Nats::start();
    let (one, other) = (Process::start(&nats.url()), Process::start(&nats.url()));
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send_all((0..4000).map(|n| command(&n.to_string()))).await;
    until(async || one.timers().await + other.timers().await == 4000).await;
    assert!(one.timers().await > 0 && other.timers().await > 0);
    witness.until_settled().await;
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_server_without_jetstream_is_named_as_the_reason() {
    let nats = Nats::builder().jetstream(false).start();
    let process = Process::closed(&nats.url());
    until(async || {
        let error = process.broker.receive(1).await.err().unwrap();
        error.to_string().contains("JetStream is not there")
    })
    .await;
}

#[tokio::test]
async fn quiet_is_an_answer() {
    let nats = Nats::start();
    let process = Process::closed(&nats.url());
    for _ in 0..2 {
        let quiet = tokio::time::timeout(Duration::from_secs(5), process.broker.receive(10)).await;
        assert!(quiet.expect("no answer").unwrap().is_empty());
    }
}
