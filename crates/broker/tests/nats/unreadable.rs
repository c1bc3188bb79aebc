//! Messages that end the connection of the client that receives them.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use async_nats::jetstream::{consumer, stream};
use futures_util::StreamExt;
use throwaway::Nats;
use tokio::time::Instant;

use crate::rig::{COMMANDS, DEAD, Process, Witness, command, header, until};

const SUBJECT: &[u8] = b"timer.commands.schedule";

/// A client that sends arbitrary bytes.
struct Raw(BufReader<TcpStream>);

impl Raw {
    fn at(nats: &Nats) -> Self {
        let mut raw = Self(BufReader::new(TcpStream::connect(("127.0.0.1", nats.port())).unwrap()));
        raw.line("INFO ");
        raw.write(&[b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"protocol\":1}\r\n"]);
        raw
    }

    fn write(&mut self, parts: &[&[u8]]) {
        self.0.get_mut().write_all(&parts.concat()).unwrap();
    }

    fn line(&mut self, expected: &str) {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        assert!(line.starts_with(expected), "{line}");
    }

    fn publish(&mut self, subject: &[u8], headers: &[u8], body: &str) {
        let sizes = format!(" {} {}\r\n", headers.len(), headers.len() + body.len());
        self.write(&[b"HPUB ", subject, sizes.as_bytes(), headers, body.as_bytes(), b"\r\n"]);
    }

    /// Returns once the server has processed everything.
    fn flush(&mut self) {
        self.write(&[b"PING\r\n"]);
        self.line("PONG");
    }
}

/// Unreadable messages: subject, headers, and what the reason names.
fn unreadable() -> Vec<(&'static [u8], Vec<u8>, &'static str)> {
    let good = b"NATS/1.0\r\nA: b\r\n\r\n".to_vec();
    let mut kinds: Vec<_> = [
        (&b"NATS/1.0\r\nA: caf\xe9\r\n\r\n"[..], "UTF-8"),
        (b"NATS/1.0\r\nTrace Id: 7\r\n\r\n", "named"),
        ("NATS/1.0\r\nSch\u{f6}n: 7\r\n\r\n".as_bytes(), "named"),
        (b"NATS/1.0\r\nno colon\r\n\r\n", "colon"),
        (b"A: b\r\n\r\n", "NATS/1.0"),
        (b"nats/1.0\r\nA: b\r\n\r\n", "NATS/1.0"),
    ]
    .map(|(headers, rule)| (SUBJECT, headers.to_vec(), rule))
    .into();
    kinds.push((b"timer.commands.\xff\xfe", good.clone(), "subject must be UTF-8"));
    kinds.push(("timer.commands.a\u{3000}b".as_bytes(), good.clone(), "subject must not hold blanks"));
    kinds.push((b"timer.commands.a\x0bb", good, "subject must not hold blanks"));
    kinds
}

async fn commands_stream(witness: &Witness, change: impl FnOnce(&mut stream::Config), ack_wait: Duration) -> stream::Stream {
    let mut config =
        stream::Config { name: COMMANDS.to_owned(), subjects: vec!["timer.commands.>".to_owned()], ..stream::Config::default() };
    change(&mut config);
    let stream = witness.context.create_stream(config).await.unwrap();
    let config = consumer::pull::Config {
        durable_name: Some("timer".to_owned()),
        ack_wait,
        max_ack_pending: 10_000,
        ..consumer::pull::Config::default()
    };
    stream.create_consumer(config).await.unwrap();
    stream
}

fn connections_so_far(nats: &Nats) -> u64 {
    nats.monitor("/varz").unwrap()["total_connections"].as_u64().unwrap()
}

#[tokio::test]
async fn commands_that_cannot_be_read_are_dead_lettered_and_stop_no_other_command() {
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    commands_stream(&witness, |_| {}, Duration::from_secs(2)).await;
    let process = Process::start(&nats.url());
    witness.until_ready().await;
    let kinds = unreadable();
    let mut raw = Raw::at(&nats);
    for n in 0..300 {
        if n % 30 == 10
            && let Some((subject, headers, _)) = kinds.get(n / 30)
        {
            raw.publish(subject, headers, &format!("bad {}", n / 30));
        }
        // These headers are odd, but readable.
        let headers: &[u8] = match n % 3 {
            0 => b"NATS/1.0 503\r\n\r\n",
            1 => b"NATS/1.0\r\n: b\r\n more\r\n\r\n",
            _ => b"NATS/1.0\r\nA:\r\n\r\n",
        };
        let subject = if n % 7 == 0 { "timer.commands.\u{fffd}".as_bytes() } else { SUBJECT };
        raw.publish(subject, headers, &command(&n.to_string()));
    }
    raw.flush();
    process.until_timers(300).await;
    let dead_letters = witness.messages(COMMANDS, DEAD, kinds.len()).await;
    let mut seen: Vec<_> = dead_letters.iter().map(|letter| String::from_utf8(letter.payload.to_vec()).unwrap()).collect();
    seen.sort();
    assert_eq!(seen, (0..kinds.len()).map(|kind| format!("bad {kind}")).collect::<Vec<_>>());
    for letter in &dead_letters {
        let kind: usize = std::str::from_utf8(&letter.payload[4..]).unwrap().parse().unwrap();
        let (subject, _, rule) = &kinds[kind];
        assert!(header(letter, "X-Timer-Reason").unwrap().contains(rule), "{rule}: {:?}", letter.headers);
        let shown = String::from_utf8_lossy(subject).replace('\u{b}', " ");
        assert_eq!(header(letter, "X-Timer-Subject"), Some(shown.as_str()));
        let sequence = header(letter, "X-Timer-Sequence").unwrap();
        assert!(header(letter, "Nats-Msg-Id").unwrap().starts_with(&format!("dead-{sequence}-")));
    }
    witness.until_settled().await;
    assert_eq!(witness.count(COMMANDS).await, 300 + kinds.len() as u64);
    // From now on messages are delivered without another search.
    let connections = connections_so_far(&nats);
    let sent = Instant::now();
    witness.send_all((300..400).map(|n| command(&n.to_string()))).await;
    process.until_timers(400).await;
    witness.until_settled().await;
    assert!(sent.elapsed() < Duration::from_secs(2), "{:?}", sent.elapsed());
    assert_eq!((connections_so_far(&nats), witness.count(COMMANDS).await), (connections, 400 + kinds.len() as u64));
    process.stop().await;
}

#[tokio::test]
async fn an_unreadable_command_that_may_not_be_removed_is_not_delivered_any_more() {
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    commands_stream(&witness, |config| config.deny_delete = true, Duration::from_secs(2)).await;
    let process = Process::start(&nats.url());
    let mut raw = Raw::at(&nats);
    raw.publish(SUBJECT, b"A: b\r\n\r\n", "bad");
    raw.publish(SUBJECT, b"NATS/1.0\r\n\r\n", &command("good"));
    raw.flush();
    process.until_timers(1).await;
    witness.messages(COMMANDS, DEAD, 1).await;
    witness.until_settled().await;
    assert_eq!(witness.count(COMMANDS).await, 3);
    process.stop().await;
}

#[tokio::test]
async fn a_command_that_ends_the_client_for_good_is_put_aside_by_the_next_process() {
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    commands_stream(&witness, |_| {}, Duration::from_secs(2)).await;
    let first = Process::start(&nats.url());
    witness.until_ready().await;
    let mut raw = Raw::at(&nats);
    raw.publish(SUBJECT, b"NATS/1.0\r\nA: b\rc\r\n\r\n", "bad");
    for n in 0..10 {
        raw.publish(SUBJECT, b"NATS/1.0\r\n\r\n", &command(&n.to_string()));
    }
    raw.flush();
    until(async || witness.consumer().await.unwrap().delivered.stream_sequence >= 1).await;
    let second = Process::start(&nats.url());
    until(async || first.timers().await + second.timers().await >= 10).await;
    let dead_letters = witness.messages(COMMANDS, DEAD, 1).await;
    assert!(header(&dead_letters[0], "X-Timer-Reason").unwrap().contains("carriage returns"));
    witness.until_settled().await;
    assert_eq!(witness.count(COMMANDS).await, 11);
    first.kill();
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_server_dead_letters_nothing_and_is_over_soon() {
    const HELD: usize = 4000;
    let nats = Nats::start();
    let witness = Witness::at(&nats).await;
    let stream = commands_stream(&witness, |_| {}, Duration::from_secs(12)).await;
    witness.send_all((0..HELD).map(|n| command(&n.to_string()))).await;
    // Another client holds all of them without a verdict.
    let theirs: consumer::PullConsumer = stream.get_consumer("timer").await.unwrap();
    let held = theirs.fetch().max_messages(HELD).messages().await.unwrap().count().await;
    assert_eq!(held, HELD);

    let opened = Instant::now();
    let process = Process::start(&nats.url());
    witness.send(command("before")).await;
    process.scheduled(1).await;
    assert!(opened.elapsed() < Duration::from_secs(3), "{:?}", opened.elapsed());

    tokio::task::block_in_place(|| {
        nats.stop_immediate();
        nats.start_again();
    });
    witness.send_surely(&command("after")).await;
    let back = Instant::now();
    until(async || process.timer("after").await.is_some()).await;
    assert!(back.elapsed() < Duration::from_secs(5), "{:?}", back.elapsed());
    process.until_timers(HELD as u64 + 2).await;
    witness.until_settled().await;
    let info = witness.stream(COMMANDS).await.unwrap();
    assert_eq!(info.state.messages, info.state.last_sequence, "something was removed");
    assert_eq!(process.timers().await, HELD as u64 + 2);
    let stream = witness.context.get_stream(COMMANDS).await.unwrap();
    assert!(stream.get_last_raw_message_by_subject(DEAD).await.is_err(), "something was dead-lettered");
    process.stop().await;
}
