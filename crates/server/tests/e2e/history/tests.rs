//! The checks themselves: each of these histories must be refused, and the good ones must not.

use super::*;

const KILL: i64 = 10_000_000;
/// Just before it, and so long after it that nothing which was sent before is still on its way.
const BEFORE: i64 = KILL - 1;
const AFTER: i64 = KILL + 1_000_000;
const PAUSED: i64 = 20_000_000;
const RESUMED: i64 = 26_000_000;
const CREATED: i64 = 50;
const DUE: i64 = 100;
const END: i64 = 90_000_000;

/// Long enough before the kill for any result to be on record.
fn recorded() -> i64 {
    KILL - tolerated(RECORDED_WITHIN_MICROS) - 1
}

fn call(arrived: i64, attempt: &str) -> Call {
    let due = crate::rig::instant(DUE);
    let headers = [("x-timer-id", "t"), ("x-timer-scheduled-at", &due), ("webhook-id", "w"), ("x-timer-attempt", attempt)];
    Call {
        method: "POST".to_owned(),
        path: "/".to_owned(),
        headers: headers.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect(),
        body: r#"{"key":"k","version":1}"#.to_owned(),
        arrived,
    }
}

fn as_other_call(call: Call) -> Call {
    let mut headers = call.headers;
    headers.insert("webhook-id", "x".parse().expect("a value"));
    Call { headers, ..call }
}

fn for_other_key(call: Call) -> Call {
    Call { body: r#"{"key":"other","version":1}"#.to_owned(), ..call }
}

fn check(asked: &[(i64, Act)], end: Status, calls: &[Call]) -> Result<Summary, ()> {
    let history = History::new(Duration::ZERO);
    let at = |at, act| Operation { from: at, to: at, act };
    let all = [(CREATED, Act::Create { version: 1 })].iter().chain(asked).map(|(time, act)| at(*time, *act));
    let end = at(END, Act::Read { status: end, version: 1 });
    let told = Told { id: None, asked: all.chain([end]).collect(), due: HashMap::from([(1, DUE)]) };
    history.told().insert("k".to_owned(), told);
    let faults = [Fault::kill(KILL), Fault::pause(PAUSED, RESUMED)];
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| history.check(calls, &faults))).map_err(drop)
}

#[test]
fn good_histories_pass_and_planted_faults_are_found() {
    let completed = |calls: &[Call]| check(&[], Status::Completed, calls).is_ok();
    for (what, calls, is_good) in [
        ("delivered", vec![call(101, "1")], true),
        ("repeated over a kill", vec![call(BEFORE, "1"), call(AFTER, "2")], true),
        ("sent before a kill and read after it", vec![call(KILL + 1_000, "1"), call(AFTER, "2")], true),
        ("held by a pause", vec![call(PAUSED + 3_600_000, "2"), call(RESUMED + 500, "1")], true),
        ("lost", vec![], false),
        ("early", vec![call(DUE - 1, "1")], false),
        ("a ghost", vec![call(101, "1"), for_other_key(call(101, "1"))], false),
        ("repeated without a fault", vec![call(101, "1"), call(102, "2")], false),
        ("repeated before a kill", vec![call(BEFORE - 1, "1"), call(BEFORE, "2")], false),
        ("repeated after a kill", vec![call(AFTER, "1"), call(AFTER + 1, "2")], false),
        ("on record before a kill, repeated", vec![call(recorded(), "1"), call(AFTER, "2")], false),
        ("repeated over a kill, and once more", vec![call(BEFORE, "1"), call(AFTER, "2"), call(AFTER + 1, "3")], false),
        ("repeated as another call", vec![call(BEFORE, "1"), as_other_call(call(AFTER, "2"))], false),
        ("one claim twice", vec![call(BEFORE, "1"), call(AFTER, "1")], false),
        (
            "sent by a paused node that should have looked",
            vec![call(PAUSED + 3_600_000, "2"), call(RESUMED + 1_000_000, "1")],
            false,
        ),
    ] {
        assert_eq!(completed(&calls), is_good, "{what}");
    }
    let canceled = [(600, Act::Cancel)];
    assert!(check(&canceled, Status::Canceled, &[]).is_err(), "nothing was measured");
    let before_and_again = [call(BEFORE, "1"), call(AFTER, "2")];
    assert!(
        check(&[(KILL + 50, Act::Cancel)], Status::Canceled, &before_and_again[..1]).is_ok(),
        "under way at a kill, then canceled"
    );
    assert!(check(&[(KILL + 50, Act::Cancel)], Status::Canceled, &before_and_again).is_err(), "called after a cancel");
}

#[test]
fn what_faults_cost_is_no_waiting() {
    let waited = |arrived| check(&[], Status::Completed, &[call(arrived, "1")]).expect("a good history").waits.max();
    assert_eq!(waited(2_000_100), 2_000.0);
    // The lease that the kill left behind, 3.5 s, is not counted.
    assert_eq!(waited(KILL + 4_000_000), (f64::from(10_000_000_i32 - 100) + 500_000.0) / 1_000.0);
}
