//! The PostgreSQL server that tests get: real, their own, durable, and gone afterwards.
#![expect(clippy::expect_used, reason = "helpers of tests are tests")]

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use throwaway::Postgres;

#[test]
fn two_databases_of_the_shared_server_know_nothing_of_each_other() {
    let postgres = throwaway::postgres();
    let (one, two) = (postgres.create_database(), postgres.create_database());
    assert_ne!(one, two);

    postgres.query(&one, "CREATE TABLE only_here (n int)");

    let tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'only_here'";
    assert_eq!(postgres.query(&one, tables), "1");
    assert_eq!(postgres.query(&two, tables), "0");
}

#[test]
fn a_copy_of_a_database_has_all_that_it_has_and_leaves_it_alone() {
    let postgres = throwaway::postgres();
    let original = postgres.create_database();
    postgres.query(&original, "CREATE TABLE copied (n int)");

    let copies = [postgres.copy_database(&original), postgres.copy_database(&original)];
    postgres.query(&copies[0], "INSERT INTO copied VALUES (42)");

    assert_eq!(copies.map(|copy| postgres.query(&copy, "SELECT count(*) FROM copied")), ["1", "0"]);
    assert_eq!(postgres.query(&original, "SELECT count(*) FROM copied"), "0");
}

#[test]
fn databases_can_be_made_by_many_tests_at_once() {
    let urls: Vec<String> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| throwaway::postgres().create_database())).collect();
        makers.into_iter().map(|maker| maker.join().expect("a database")).collect()
    });
    // The threads that made the calls are gone; a server tied to one of them would be, too.
    for url in urls {
        assert_eq!(throwaway::postgres().query(&url, "SELECT 1"), "1");
    }
}

#[test]
fn the_server_is_durable_and_takes_many_connections() {
    let postgres = throwaway::postgres();
    let show = |setting: &str| postgres.query(&postgres.url("postgres"), &format!("SHOW {setting}"));
    assert_eq!(show("fsync"), "on");
    assert_eq!(show("synchronous_commit"), "on");
    assert_eq!(show("full_page_writes"), "on");
    assert_eq!(show("max_connections"), "400");
}

#[test]
fn data_survives_an_immediate_stop_and_urls_stay_valid() {
    let postgres = Postgres::start();
    let url = postgres.create_database();
    postgres.query(&url, "CREATE TABLE kept (n int)");
    postgres.query(&url, "INSERT INTO kept VALUES (42)");

    postgres.stop_immediate();
    postgres.stop_immediate();
    assert!(TcpStream::connect(address(&url)).is_err(), "a stopped server takes no connections");

    postgres.start_again();
    postgres.start_again();
    assert_eq!(postgres.query(&url, "SELECT n FROM kept"), "42");
}

#[test]
fn nothing_is_left_behind_on_drop() {
    let postgres = Postgres::start();
    let home = postgres.home().to_path_buf();
    let process = server_process(&home);
    let url = postgres.create_database();
    assert!(runs(&process));

    drop(postgres);

    assert!(!home.exists());
    assert!(!runs(&process));
    assert!(TcpStream::connect(address(&url)).is_err());
}

#[test]
fn a_killed_test_process_takes_its_server_along_and_the_next_start_cleans_up() {
    let mut child = Command::new(std::env::current_exe().expect("this test binary"))
        .args(["--exact", "start_the_shared_server_and_wait", "--ignored", "--nocapture"])
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
    drop(Postgres::start());
    assert!(!home.exists(), "the directory of a killed process is still there");
}

#[test]
#[ignore = "is run, and killed, by the test above"]
fn start_the_shared_server_and_wait() {
    println!("home={}", throwaway::postgres().home().display());
    sleep(Duration::from_secs(60));
}

fn server_process(home: &Path) -> PathBuf {
    let status = std::fs::read_to_string(home.join("data/postmaster.pid")).expect("a running server");
    Path::new("/proc").join(status.lines().next().expect("a process id"))
}

/// A process that has ended but was not yet waited for still has an entry, without a command line.
fn runs(process: &Path) -> bool {
    std::fs::read(process.join("cmdline")).is_ok_and(|words| !words.is_empty())
}

fn address(url: &str) -> &str {
    let (_, rest) = url.split_once('@').expect("a user");
    rest.split('/').next().expect("an address")
}
