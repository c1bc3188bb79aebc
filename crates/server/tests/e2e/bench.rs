//! `timer bench`: its measurements add up, it leaves nothing behind, and its page can be made.

use std::{fs, path::Path, process::Output};

use serde_json::Value;

use crate::rig::{Backend, beside_others, for_each_store, timer};

for_each_store!(a_service_of_its_own_is_measured_and_a_page_made_of_it, the_cliffs_of_a_service_are_looked_for,);

const TIMERS: u64 = 200;

async fn a_service_of_its_own_is_measured_and_a_page_made_of_it(backend: Backend) {
    let _machine = beside_others().await;
    let home = backend.home();
    let directory = home.join("bench");
    fs::create_dir(&directory).expect("a directory");
    let output = bench(
        home,
        &["w1", "w2", "--embedded", "--quick", "--count", "200", "--json", "-"],
        &[("BENCH_DATABASE_URL", backend.url()), ("TMPDIR", directory.to_str().expect("a path"))],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let store = record["service"]["store"].as_str().expect("a store");
    assert!(store.starts_with(backend.name()), "{store}");
    assert_eq!(record["service"]["version"], env!("CARGO_PKG_VERSION"));
    check_runs(&record);
    assert!(record["ceilings"][0]["posts_per_second"].as_f64() > Some(0.0), "{record}");
    assert!(record["disk"]["write"]["p50"].as_f64() > Some(0.0), "{record}");
    assert!(record["memory"]["access_nanoseconds"].as_f64() > Some(0.0), "{record}");
    let left: Vec<_> = fs::read_dir(&directory).expect("a directory").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    make_page(home, &output.stdout);
}

/// So many pending timers that canceling them becomes an operation.
const PENDING: u64 = 1_200;

async fn the_cliffs_of_a_service_are_looked_for(backend: Backend) {
    let _machine = beside_others().await;
    let home = backend.home();
    let pending = PENDING.to_string();
    let arguments = ["cliffs", "--embedded", "--quick", "--count", "50", "--rate", "50", "--pending", &pending, "--json", "-"];
    let output = bench(home, &arguments, &[("BENCH_DATABASE_URL", backend.url())]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let runs = record["runs"].as_array().expect("runs");
    let names: Vec<_> = runs.iter().filter_map(|run| run["workload"].as_str()).collect();
    assert_eq!(names, ["mixed", "lists 0/s", "lists 1/s", "lists 20/s", "cancels", "updates", "slow", "burst"]);
    for run in runs {
        for trouble in ["refused", "lost", "duplicates", "early"] {
            assert_eq!(run[trouble], 0, "{trouble} of {run}");
        }
        let times = if run["lateness"].is_object() { &run["lateness"] } else { &run["answers"] };
        assert!(times["max"].as_f64() > Some(0.0), "{run}");
    }
    let sent = |run: usize| {
        let streams = runs[run]["streams"].as_array().expect("streams").iter();
        streams.map(|stream| (stream["name"].as_str().expect("a name"), stream["requests"].as_u64())).collect::<Vec<_>>()
    };
    assert_eq!((sent(0), runs[0]["pending"].as_u64()), (vec![("creates", Some(50)), ("cancels", Some(50))], Some(PENDING)));
    assert_eq!(sent(3)[2], ("lists", Some(20)));
    assert!(runs[6]["in_flight_max"].as_u64() > Some(0), "{}", runs[6]);
}

fn check_runs(record: &Value) {
    let runs = record["runs"].as_array().expect("runs");
    assert_eq!(runs.iter().map(|run| run["workload"].as_str()).collect::<Vec<_>>(), [Some("w1"), Some("w2")]);
    for run in runs {
        assert_eq!(run["timers"], TIMERS, "{run}");
        for trouble in ["refused", "lost", "duplicates", "early"] {
            assert_eq!(run[trouble], 0, "{trouble} of {run}");
        }
        assert!(run["rate"].as_f64() > Some(0.0), "{run}");
        for measured in ["service_seconds", "foreign_share", "stolen_share"] {
            assert!(run["usage"][measured].is_f64(), "{measured} of {run}");
        }
    }
    assert!(runs[0]["answers"]["p50"].as_f64() > Some(0.0), "{runs:?}");
    assert!(runs[1]["lateness"]["max"].as_f64() >= runs[1]["lateness"]["p50"].as_f64(), "{runs:?}");
    assert!(runs[1]["lateness"]["max"].as_f64() > Some(0.0), "{runs:?}");
}

fn make_page(home: &Path, json: &[u8]) {
    fs::write(home.join("a.json"), json).expect("a file");
    let output = bench(home, &["report", "a.json", "--out", "results/day.md"], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = fs::read_to_string(home.join("results/day.md")).expect("the page");
    assert!(page.contains("| w2 | 0 | 200 |"), "{page}");
    let chart = fs::read_to_string(home.join("results/day-lateness.svg")).expect("the chart");
    assert!(chart.contains("<polyline"), "{chart}");
}

#[tokio::test]
async fn what_cannot_be_measured_is_refused_with_one_sentence() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    fs::write(backend.home().join("other.json"), "{}").expect("a file");
    for (arguments, complaint) in [
        (["w9", "--embedded"].as_slice(), "there is no workload w9"),
        (&["w1"], "give --url"),
        (&["w1", "--url", "http://127.0.0.1:1"], "API_KEY is required"),
        (&["w1", "--url", "127.0.0.1:1", "--api-key", "key"], "the URL of the service"),
        (&["w1", "--embedded", "--runs", "0"], "--runs must be"),
        (&["w1", "--embedded", "--count", "many"], "--count must be"),
        (&["w4", "--embedded", "--sizes", "10,x"], "--sizes must be"),
        (&["mixed", "--embedded", "--rate", "0"], "--rate must be"),
        (&["lists", "--embedded", "--pending", "x"], "--pending must be"),
        (&["w1", "--embedded", "--receiver", "here"], "--receiver must be"),
        (&["w1", "--embedded", "--set", "IN_FLIGHT_MAX"], "--set must be"),
        (&["w1", "--embedded", "--against", "none"], "the program for --against cannot be found"),
        (&["w1", "--url", "http://127.0.0.1:1", "--against", "/bin/true"], "--against needs --embedded"),
        (&["w1", "--embedded", "--against", "/bin/true", "--report", "."], "--report makes a page of one build"),
        (
            &["w1", "--embedded", "--against", "/bin/true", "--database-url", "postgres://x/y"],
            "--against with --database-url needs",
        ),
        (&["report", "none.json", "--out", "x.md"], "none.json cannot be read"),
        (&["report", "other.json", "--out", "x.md"], "other.json was not written by"),
    ] {
        let output = bench(backend.home(), arguments, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.starts_with(&format!("timer: {complaint}")) && said.trim_end().ends_with('.'), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn two_builds_are_compared_in_turns_each_on_a_database_of_its_own() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let itself = env!("CARGO_BIN_EXE_timer");
    let arguments = ["w1", "w2", "--embedded", "--quick", "--count", "100", "--runs", "2", "--json", "-"];
    let pairs = ["--against", itself, "--before", "echo started >>starts"];
    let output = bench(backend.home(), &[arguments.as_slice(), &pairs].concat(), &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let comparison: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for (ratios, workload) in comparison["ratios"].as_array().expect("ratios").iter().zip(["w1", "w2"]) {
        assert_eq!((&ratios["workload"], &ratios["pairs"]), (&workload.into(), &2.into()), "{comparison}");
        let ratio = |which: &str| ratios["rate"][which].as_f64().expect("a ratio");
        assert!(0.0 < ratio("min") && ratio("min") <= ratio("median") && ratio("median") <= ratio("max"), "{ratios}");
    }
    assert_eq!(comparison["other"]["program"], itself);
    let starts = fs::read_to_string(backend.home().join("starts")).expect("the command was run");
    assert_eq!(starts.lines().count(), 8, "two workloads, two pairs, two builds");
}

#[tokio::test]
async fn a_service_that_does_not_start_says_why() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let output = bench(backend.home(), &["w1", "--embedded", "--set", "IN_FLIGHT_MAX=none"], &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the service ended while it started") && said.contains("IN_FLIGHT_MAX"), "{said}");
}

fn bench(home: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = timer(home);
    // The service is asked to end by a program that is found there.
    command.env("PATH", "/usr/bin:/bin").arg("bench").args(arguments).envs(environment.iter().copied());
    command.output().expect("the binary runs")
}
