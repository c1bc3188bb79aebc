use std::time::Duration;

use async_nats::jetstream::{AckKind, consumer, stream};
use bytes::Bytes;
use futures_util::StreamExt;
use throwaway::Nats;
use tokio::time::Instant;

use crate::rig::{COMMANDS, DEAD, Process, Witness, command, header, until};

/// Commands that are wrong, each in a way of its own.
fn refused() -> Vec<String> {
    let mut bodies: Vec<String> = [
        "",
        "x",
        "{",
        "[]",
        "null",
        "7",
        "\"a\"",
        "{}",
        r#"{"type":"ScheduleTimer"}"#,
        r#"{"type":"CancelTimer","payload":{}}"#,
        r#"{"payload":{}}"#,
        r#"{"type":7,"payload":{}}"#,
        r#"{"type":"ScheduleTimer","payload":[]}"#,
        r#"{"type":"ScheduleTimer","payload":"{}"}"#,
    ]
    .map(str::to_owned)
    .into();
    let good = command("k");
    for field in ["tenantId", "serviceCallId", "dueAt"] {
        bodies.push(good.replace(field, "other"));
        for value in ["7", "true", "{}", "[]", "null", "\"\"", "\"\\u0000\""] {
            let start = good.find(field).unwrap() + field.len() + 2;
            let end = good[start..].find([',', '}']).unwrap() + start;
            bodies.push(format!("{}{value}{}", &good[..start], &good[end..]));
        }
    }
    for tenant in ["a b", "a.b", "*", ">", "$SYS", "é"] {
        bodies.push(good.replace("acme", tenant));
    }
    for due in ["tomorrow", "2030-01-31", "1960-01-01T00:00:00Z", "99999-01-01T00:00:00Z"] {
        bodies.push(format!(r#"{{"tenantId":"acme","serviceCallId":"k","dueAt":"{due}"}}"#));
    }
    for more in
        [r#""id":7"#, r#""timestampMs":"1""#, r#""correlationId":7"#, r#""tenantId":"other""#, r#""type":"ScheduleTimer""#]
    {
        bodies.push(format!(r#"{{"type":"ScheduleTimer","payload":{good},{more}}}"#));
    }
    bodies.push(format!(r#"{{"pad":"{}"}}"#, "x".repeat(70_000)));
    bodies.push("[".repeat(1000));
    bodies
}

#[tokio::test]
async fn what_can_never_work_is_dead_lettered_with_its_reason_and_delays_no_other_command() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    let refused = refused();
    assert!(refused.len() >= 50, "{}", refused.len());
    let started = Instant::now();
    let mixed = refused.iter().enumerate().flat_map(|(n, bad)| [bad.clone(), command(&n.to_string())]);
    witness.send_all(mixed).await;
    process.scheduled(refused.len()).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());

    let dead_letters = witness.messages(COMMANDS, DEAD, refused.len()).await;
    let mut bodies: Vec<_> = dead_letters.iter().map(|letter| letter.payload.clone()).collect();
    let mut expected: Vec<_> = refused.iter().map(|body| Bytes::from(body.clone())).collect();
    bodies.sort();
    expected.sort();
    assert_eq!(bodies, expected);
    for letter in &dead_letters {
        let reason = header(letter, "X-Timer-Reason").unwrap();
        assert!(reason.contains(" must ") || reason.contains(" is required"), "{reason}");
        assert_eq!(header(letter, "X-Timer-Subject"), Some("timer.commands.schedule"));
        let sequence: u64 = header(letter, "X-Timer-Sequence").unwrap().parse().unwrap();
        assert!((1..=3 * refused.len() as u64).contains(&sequence));
        assert!(header(letter, "Nats-Msg-Id").unwrap().starts_with(&format!("dead-{sequence}-")));
    }
    // The consumer meets its own dead letters in the stream, and does not dead-letter them again.
    witness.until_settled().await;
    assert_eq!(witness.count(COMMANDS).await, 3 * refused.len() as u64);
    assert_eq!(process.timers().await, refused.len() as u64);
    process.stop().await;
}

#[tokio::test]
async fn a_letter_that_would_exceed_the_limit_with_its_headers_is_cut() {
    let nats = Nats::builder().max_payload_bytes(4096).start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send("x".repeat(4096)).await;
    let dead_letters = witness.messages(COMMANDS, DEAD, 1).await;
    assert_eq!(header(&dead_letters[0], "X-Timer-Truncated"), Some("true"));
    assert!((3000..4096).contains(&dead_letters[0].payload.len()), "{}", dead_letters[0].payload.len());
    witness.until_settled().await;
    process.stop().await;
}

#[tokio::test]
async fn a_flood_of_what_can_never_work_passes() {
    let nats = Nats::start();
    let process = Process::start(&nats.url());
    let witness = Witness::at(&nats).await;
    witness.until_ready().await;
    witness.send_all((0..3000).map(|n| format!("nonsense {n}")).chain([command("behind")])).await;
    process.scheduled(1).await;
    until(async || witness.count(COMMANDS).await == 6001).await;
    witness.until_settled().await;
    process.stop().await;
}

/// A stream that takes no messages above this size, headers included.
async fn narrow_stream(witness: &Witness, bytes_max: i32) -> stream::Stream {
    let config = stream::Config {
        name: COMMANDS.to_owned(),
        subjects: vec!["timer.commands.>".to_owned()],
        max_message_size: bytes_max,
        ..stream::Config::default()
    };
    witness.context.create_stream(config).await.unwrap()
}

#[tokio::test]
async fn a_letter_that_is_refused_goes_without_its_body() {
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    narrow_stream(&witness, 600).await;
    let process = Process::start(&nats.url());
    witness.send("x".repeat(600)).await;
    let dead_letters = witness.messages(COMMANDS, DEAD, 1).await;
    assert_eq!((header(&dead_letters[0], "X-Timer-Truncated"), dead_letters[0].payload.len()), (Some("true"), 0));
    assert_eq!(header(&dead_letters[0], "X-Timer-Sequence"), Some("1"));
    witness.until_settled().await;
    process.stop().await;
}

#[tokio::test]
async fn a_command_that_can_have_no_letter_comes_again_ten_times_and_then_stays_in_the_stream() {
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    let stream = narrow_stream(&witness, 20).await;
    let config = consumer::pull::Config { durable_name: Some("timer".to_owned()), ..consumer::pull::Config::default() };
    let theirs = stream.create_consumer(config).await.unwrap();
    witness.send("nonsense").await;
    let mut messages = theirs.messages().await.unwrap();
    for _ in 0..8 {
        messages.next().await.unwrap().unwrap().ack_with(AckKind::Nak(None)).await.unwrap();
    }
    let ninth = messages.next().await.unwrap().unwrap();
    assert_eq!(ninth.info().unwrap().delivered, 9);
    drop(messages);
    // Two more deliveries: the tenth reaches the consumer, which then gives up on the letter.
    let process = Process::start(&nats.url());
    ninth.ack_with(AckKind::Nak(None)).await.unwrap();
    witness.until_settled().await;
    let consumer = witness.consumer().await.unwrap();
    assert_eq!((consumer.delivered.consumer_sequence, witness.count(COMMANDS).await), (10, 1));
    process.stop().await;
}
