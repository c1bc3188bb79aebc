//! Starting, stopping and pausing servers, which leave nothing behind.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;
use throwaway::Nats;

use crate::wire::{Client, greeted};

#[test]
fn the_shared_server_serves_many_tests_at_once() {
    let answers: Vec<_> = std::thread::scope(|scope| {
        let tests: Vec<_> = (0..8)
            .map(|test| {
                scope.spawn(move || {
                    let mut client = Client::connect(&throwaway::nats().url());
                    let stream = format!("SHARED{test}");
                    client.api(
                        &format!("STREAM.CREATE.{stream}"),
                        &json!({ "name": stream, "subjects": [format!("shared.{test}")] }),
                    )
                })
            })
            .collect();
        tests.into_iter().map(|test| test.join().expect("an answer")).collect()
    });
    // The threads that made the calls are gone; a server tied to one of them would be, too.
    for (test, answer) in answers.iter().enumerate() {
        assert_eq!(answer["config"]["name"], format!("SHARED{test}"), "{answer}");
    }
    assert_eq!(Client::connect(&throwaway::nats().url()).complaints(), Vec::<String>::new());
}

#[test]
fn streams_survive_an_immediate_stop_and_urls_stay_valid() {
    let nats = Nats::start();
    let mut client = Client::connect(&nats.url());
    client.api("STREAM.CREATE.KEPT", &json!({ "name": "KEPT", "subjects": ["kept"] }));
    for sequence in 1..=3 {
        assert_eq!(client.request("kept", "message")["seq"], sequence);
    }

    nats.stop_immediate();
    nats.stop_immediate();
    assert_eq!(client.line(), "", "a stopped server ends its connections");
    assert!(TcpStream::connect(("127.0.0.1", nats.port())).is_err(), "a stopped server takes no connections");
    assert_eq!(nats.monitor("/varz"), None);

    nats.start_again();
    nats.start_again();
    let mut client = Client::connect(&nats.url());
    let info = client.api("STREAM.INFO.KEPT", &json!({}));
    assert_eq!(info["state"]["messages"], 3, "{info}");
    assert_eq!(nats.log().matches("Server is ready").count(), 2, "{}", nats.log());
}

#[test]
fn a_paused_server_keeps_its_connections_and_says_nothing_until_it_is_resumed() {
    let nats = Nats::start();
    let (mut stream, _) = greeted(&nats.url());

    nats.pause();
    stream.write_all(b"CONNECT {\"verbose\":false}\r\nPING\r\n").expect("the kernel reads for it");
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
    let silence = stream.read(&mut [0; 16]).expect_err("no answer");
    assert_eq!(silence.kind(), ErrorKind::WouldBlock);

    nats.resume();
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    let mut answer = [0; 6];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"PONG\r\n");
}

#[test]
fn a_paused_server_can_be_killed_and_comes_back() {
    let nats = Nats::start();
    nats.pause();
    nats.stop_immediate();
    nats.start_again();
    assert_eq!(Client::connect(&nats.url()).complaints(), Vec::<String>::new());
}

#[test]
fn nothing_is_left_behind_on_drop() {
    let nats = Nats::start();
    let (home, port) = (nats.home().to_path_buf(), nats.port());
    let process = server_process(&home);
    assert!(home.join("jetstream").is_dir(), "the data stands elsewhere");
    assert!(runs(&process));

    drop(nats);

    assert!(!home.exists());
    assert!(!runs(&process));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_killed_test_process_takes_its_server_along_though_it_is_paused() {
    let mut child = Command::new(std::env::current_exe().expect("this test binary"))
        .args(["--exact", "life::start_and_pause_the_shared_server_and_wait", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test binary runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let home = lines.find_map(|line| line.split_once("home=").map(|(_, home)| PathBuf::from(home))).expect("the home");
    let process = server_process(&home);
    assert!(runs(&process));

    child.kill().expect("the child can be killed");
    child.wait().expect("the child ends");

    let mut polls_left = 500;
    while runs(&process) && polls_left > 0 {
        polls_left -= 1;
        sleep(Duration::from_millis(20));
    }
    assert!(!runs(&process), "the server of a killed process still runs");
    drop(Nats::start());
    assert!(!home.exists(), "the directory of a killed process is still there");
}

#[test]
#[ignore = "is run, and killed, by the test above"]
fn start_and_pause_the_shared_server_and_wait() {
    throwaway::nats().pause();
    println!("home={}", throwaway::nats().home().display());
    sleep(Duration::from_secs(60));
}

fn server_process(home: &Path) -> PathBuf {
    let id = std::fs::read_to_string(home.join("pid")).expect("a running server");
    Path::new("/proc").join(id.trim())
}

/// A process that has ended but was not yet waited for still has an entry, without a command line.
fn runs(process: &Path) -> bool {
    std::fs::read(process.join("cmdline")).is_ok_and(|words| !words.is_empty())
}
