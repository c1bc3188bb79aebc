//! The table of conflicts through both HTTP APIs: what a create is told when its key is taken, and what the receiver gets for it.
//!
//! ```text
//!   first request ──▶ pending, paused, executing, completed, …, expired ──▶ second request, the same or another
//!                                                                              │
//!                     which contents the receiver has got when all is done ◀───┴──▶ status, words, the timer as it stands
//! ```

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::rig::{
    Act, Answer, Backend, Client, Scripted, Service, beside_others, callback_to, eventually, for_each_store, http_answer,
    instant, micros, now,
};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Nothing is due by itself but what takes the new time.
const FIRST_AT: &str = "2099-01-01T00:00:00Z";
/// So that the second request is still about the future when it is read.
const SECOND_AFTER_MICROS: i64 = 3_000_000;
/// The same as a delay.
const POSTPONED_BY: &str = "3s";
const NAMESPACE: &str = "conflicts";

for_each_store!(mariadb in soak: the_table_of_conflicts_holds_through_both_apis_up_to_the_receiver);

/// Through which API, and with which mode, the second request comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Reject,
    Replace,
    Keep,
    Earliest,
    Latest,
    Postpone,
    /// `POST /api/v1/timers`.
    V1,
    /// `POST /api/v1/timers/create`.
    V1Create,
}

/// What is there when the second request comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Nothing,
    Pending,
    Executing,
    Completed,
    Failed,
    Canceled,
    Paused,
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Same,
    /// Another payload and another time, which is earlier.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Created,
    Existing,
    Replaced,
    /// 409: other content.
    Taken,
    /// 409: it is being delivered.
    Busy,
}

use Content::{Other, Same};
use Mode::{Earliest, Keep, Latest, Postpone, Reject, Replace, V1, V1Create};
use State::{Canceled, Completed, Executing, Expired, Failed, Nothing, Paused, Pending};
use Told::{Busy, Created, Existing, Replaced, Taken};

/// A row: what the second request is told, the content that the timer has then, and what the receiver has got in the end. What is
/// still pending then and far away is fired, to see what it would have delivered.
type Row = (Mode, State, Content, Told, &'static str, &'static [&'static str]);

#[rustfmt::skip]
const TABLE: [Row; 105] = [
    (Reject,   Nothing,   Other, Created,  "second", &["second"]),
    (Reject,   Pending,   Same,  Existing, "first",  &["first"]),
    (Reject,   Pending,   Other, Taken,    "first",  &["first"]),
    (Reject,   Executing, Same,  Existing, "first",  &["first"]),
    (Reject,   Executing, Other, Existing, "first",  &["first"]),
    (Reject,   Completed, Same,  Existing, "first",  &["first"]),
    (Reject,   Completed, Other, Taken,    "first",  &["first"]),
    (Reject,   Failed,    Same,  Existing, "first",  &["first"]),
    (Reject,   Failed,    Other, Taken,    "first",  &["first"]),
    (Reject,   Canceled,  Same,  Existing, "first",  &[]),
    (Reject,   Canceled,  Other, Taken,    "first",  &[]),

    (Replace,  Nothing,   Other, Created,  "second", &["second"]),
    (Replace,  Pending,   Same,  Replaced, "first",  &["first"]),
    (Replace,  Pending,   Other, Replaced, "second", &["second"]),
    (Replace,  Executing, Same,  Busy,     "first",  &["first"]),
    (Replace,  Executing, Other, Busy,     "first",  &["first"]),
    (Replace,  Completed, Same,  Replaced, "first",  &["first", "first"]),
    (Replace,  Completed, Other, Replaced, "second", &["first", "second"]),
    (Replace,  Failed,    Same,  Replaced, "first",  &["first", "first"]),
    (Replace,  Failed,    Other, Replaced, "second", &["first", "second"]),
    (Replace,  Canceled,  Same,  Replaced, "first",  &["first"]),
    (Replace,  Canceled,  Other, Replaced, "second", &["second"]),

    (Keep,     Nothing,   Other, Created,  "second", &["second"]),
    (Keep,     Pending,   Same,  Replaced, "first",  &["first"]),
    (Keep,     Pending,   Other, Replaced, "first",  &["first"]),
    (Keep,     Executing, Same,  Existing, "first",  &["first"]),
    (Keep,     Executing, Other, Existing, "first",  &["first"]),
    (Keep,     Completed, Same,  Existing, "first",  &["first"]),
    (Keep,     Completed, Other, Existing, "first",  &["first"]),
    (Keep,     Failed,    Same,  Existing, "first",  &["first"]),
    (Keep,     Failed,    Other, Existing, "first",  &["first"]),
    (Keep,     Canceled,  Same,  Existing, "first",  &[]),
    (Keep,     Canceled,  Other, Existing, "first",  &[]),

    (V1,       Nothing,   Other, Created,  "second", &["second"]),
    (V1,       Pending,   Same,  Existing, "first",  &["first"]),
    (V1,       Pending,   Other, Taken,    "first",  &["first"]),
    (V1,       Executing, Same,  Existing, "first",  &["first"]),
    (V1,       Executing, Other, Existing, "first",  &["first"]),
    (V1,       Completed, Same,  Existing, "first",  &["first"]),
    (V1,       Completed, Other, Taken,    "first",  &["first"]),
    (V1,       Failed,    Same,  Existing, "first",  &["first"]),
    (V1,       Failed,    Other, Taken,    "first",  &["first"]),
    (V1,       Canceled,  Same,  Existing, "first",  &[]),
    (V1,       Canceled,  Other, Taken,    "first",  &[]),

    (V1Create, Nothing,   Other, Created,  "second", &["second"]),
    (V1Create, Pending,   Same,  Replaced, "first",  &["first"]),
    (V1Create, Pending,   Other, Replaced, "second", &["second"]),
    (V1Create, Executing, Same,  Busy,     "first",  &["first"]),
    (V1Create, Executing, Other, Busy,     "first",  &["first"]),
    (V1Create, Completed, Same,  Replaced, "first",  &["first", "first"]),
    (V1Create, Completed, Other, Replaced, "second", &["first", "second"]),
    (V1Create, Failed,    Same,  Replaced, "first",  &["first", "first"]),
    (V1Create, Failed,    Other, Replaced, "second", &["first", "second"]),
    (V1Create, Canceled,  Same,  Replaced, "first",  &["first"]),
    (V1Create, Canceled,  Other, Replaced, "second", &["second"]),

    (Reject,    Paused,    Same,  Existing, "first",  &["first"]),
    (Reject,    Paused,    Other, Taken,    "first",  &["first"]),
    (Reject,    Expired,   Same,  Existing, "first",  &[]),
    (Reject,    Expired,   Other, Taken,    "first",  &[]),
    (Replace,   Paused,    Same,  Replaced, "first",  &["first"]),
    (Replace,   Paused,    Other, Replaced, "second", &["second"]),
    (Replace,   Expired,   Same,  Replaced, "first",  &["first"]),
    (Replace,   Expired,   Other, Replaced, "second", &["second"]),
    (Keep,      Paused,    Same,  Replaced, "first",  &["first"]),
    (Keep,      Paused,    Other, Replaced, "first",  &["first"]),
    (Keep,      Expired,   Same,  Existing, "first",  &[]),
    (Keep,      Expired,   Other, Existing, "first",  &[]),

    (Earliest,  Nothing,   Other, Created,  "second", &["second"]),
    (Earliest,  Pending,   Same,  Existing, "first",  &["first"]),
    (Earliest,  Pending,   Other, Replaced, "first",  &["first"]),
    (Earliest,  Paused,    Same,  Existing, "first",  &["first"]),
    (Earliest,  Paused,    Other, Replaced, "first",  &["first"]),
    (Earliest,  Executing, Same,  Existing, "first",  &["first"]),
    (Earliest,  Executing, Other, Existing, "first",  &["first"]),
    (Earliest,  Completed, Same,  Existing, "first",  &["first"]),
    (Earliest,  Completed, Other, Existing, "first",  &["first"]),
    (Earliest,  Failed,    Same,  Existing, "first",  &["first"]),
    (Earliest,  Failed,    Other, Existing, "first",  &["first"]),
    (Earliest,  Canceled,  Same,  Existing, "first",  &[]),
    (Earliest,  Canceled,  Other, Existing, "first",  &[]),
    (Earliest,  Expired,   Same,  Existing, "first",  &[]),
    (Earliest,  Expired,   Other, Existing, "first",  &[]),

    (Latest,    Nothing,   Other, Created,  "second", &["second"]),
    (Latest,    Pending,   Same,  Existing, "first",  &["first"]),
    (Latest,    Pending,   Other, Existing, "first",  &["first"]),
    (Latest,    Paused,    Same,  Existing, "first",  &["first"]),
    (Latest,    Paused,    Other, Existing, "first",  &["first"]),
    (Latest,    Executing, Same,  Existing, "first",  &["first"]),
    (Latest,    Executing, Other, Existing, "first",  &["first"]),
    (Latest,    Completed, Same,  Existing, "first",  &["first"]),
    (Latest,    Completed, Other, Existing, "first",  &["first"]),
    (Latest,    Failed,    Same,  Existing, "first",  &["first"]),
    (Latest,    Failed,    Other, Existing, "first",  &["first"]),
    (Latest,    Canceled,  Same,  Existing, "first",  &[]),
    (Latest,    Canceled,  Other, Existing, "first",  &[]),
    (Latest,    Expired,   Same,  Existing, "first",  &[]),
    (Latest,    Expired,   Other, Existing, "first",  &[]),

    (Postpone,  Nothing,   Other, Created,  "second", &["second"]),
    (Postpone,  Pending,   Other, Replaced, "first",  &["first"]),
    (Postpone,  Paused,    Other, Replaced, "first",  &["first"]),
    (Postpone,  Executing, Other, Busy,     "first",  &["first"]),
    (Postpone,  Completed, Other, Replaced, "second", &["first", "second"]),
    (Postpone,  Failed,    Other, Replaced, "second", &["first", "second"]),
    (Postpone,  Canceled,  Other, Replaced, "second", &["second"]),
    (Postpone,  Expired,   Other, Replaced, "second", &["second"]),
];

/// One row, tried.
struct Case<'a> {
    row: &'a Row,
    client: &'a Client,
    receiver: &'a Scripted,
    /// Also its path at the receiver, after a slash.
    key: String,
    id: String,
}

async fn the_table_of_conflicts_holds_through_both_apis_up_to_the_receiver(backend: Backend) {
    let _machine = beside_others().await;
    let mut service = Service::start(&backend).await;
    let client = service.client();
    let (let_go, may_speak) = watch::channel(false);
    // The calls of timers that are to be met executing are answered when all second requests are.
    let receiver = Scripted::start(move |call| {
        let ok = http_answer("200 OK", "", r#"{"ok":true}"#);
        match call.path.rsplit('-').next() {
            Some("Executing") => Act::SayOnce(may_speak.clone(), ok),
            Some("Failed") => Act::Say(http_answer("500 Internal Server Error", "", "")),
            _ => Act::Say(ok),
        }
    });
    let cases: Vec<Case> = TABLE.iter().map(|row| Case::of(row, &client, &receiver)).collect();

    join_all(cases.iter().map(Case::prepare)).await;
    in_bulk(&client, "pause", Paused).await;
    in_bulk(&client, "expire", Expired).await;
    join_all(cases.iter().map(Case::wait_until_prepared)).await;
    join_all(cases.iter().map(Case::ask_again)).await;
    in_bulk(&client, "resume", Paused).await;
    let_go.send(true).expect("the receiver listens");
    join_all(cases.iter().map(Case::fire_what_is_far)).await;
    client.wait_until_finished(TIMEOUT).await;
    join_all(cases.iter().map(Case::check_what_arrived)).await;
    let created = TABLE.len() as u64;
    let total = client.get(&format!("/timers?limit=1&namespace={NAMESPACE}")).await.json()["data"]["total"].as_u64();
    assert_eq!(total, Some(created), "one timer a key");
    service.stop().await;
}

/// Does one thing to all timers that were meant for this state.
async fn in_bulk(client: &Client, action: &str, state: State) {
    let filter = json!({"namespace": NAMESPACE, "group": state.name()});
    let bulk = json!({"action": action, "filter": filter, "expected_max": TABLE.len()});
    let answer = client.send("POST", "/timers/bulk", Some(&bulk)).await;
    let meant = TABLE.iter().filter(|row| row.1 == state).count();
    assert_eq!((answer.status, &answer.json()["data"]["changed"]), (200, &json!(meant)), "{action}: {}", answer.text);
}

impl<'a> Case<'a> {
    fn of(row: &'a Row, client: &'a Client, receiver: &'a Scripted) -> Self {
        let (mode, state, content, ..) = row;
        let key = format!("{mode:?}-{content:?}-{state:?}");
        let (namespace, known) = (domain::Namespace::parse(NAMESPACE), domain::Key::parse(&key));
        let id = domain::TimerId::keyed(&namespace.expect("a namespace"), &known.expect("a key")).to_string();
        Self { row, client, receiver, key, id }
    }

    fn path(&self) -> String {
        format!("/{}", self.key)
    }

    async fn ask(&self, content: &str, at: &str) -> Answer {
        let url = self.receiver.url(&self.path());
        let v1 = || {
            let key = &self.key;
            json!({"id": key, "namespace": NAMESPACE, "executeAt": at, "callbackUrl": url, "payload": content})
        };
        let native = |mode: &str| {
            let callback = callback_to(&url, &json!(content));
            let (time, value) = if mode == "postpone" { ("delay", POSTPONED_BY) } else { ("execute_at", at) };
            let group = self.row.1.name();
            json!({
                "key": self.key, "namespace": NAMESPACE, "group": group, time: value, "on_conflict": mode, "callback": callback,
            })
        };
        let (path, body) = match self.row.0 {
            Reject => ("/timers", native("reject")),
            Replace => ("/timers", native("replace")),
            Keep => ("/timers", native("keep")),
            Earliest => ("/timers", native("earliest")),
            Latest => ("/timers", native("latest")),
            Postpone if at == FIRST_AT => ("/timers", native("reject")),
            Postpone => ("/timers", native("postpone")),
            V1 => ("/api/v1/timers", v1()),
            V1Create => ("/api/v1/timers/create", v1()),
        };
        self.client.try_send("POST", path, Some(body.to_string())).await.expect("an answer")
    }

    /// Brings the timer of the first request into the state in which the second meets it.
    async fn prepare(&self) {
        let state = self.row.1;
        if state == Nothing {
            return;
        }
        let first = self.ask("first", FIRST_AT).await;
        assert!(first.is_success(), "{}: {}", self.key, first.text);
        match state {
            Nothing | Pending | Paused | Expired => {}
            Canceled => assert_eq!(self.client.try_cancel(&self.id).await.expect("an answer").status, 200, "{}", self.key),
            Completed | Failed => self.fire().await,
            Executing => {
                self.fire().await;
                let arrived = async || (self.receiver.exchanges(&self.path()).len() == 1).then_some(());
                eventually(&format!("{} is being called", self.key), TIMEOUT, arrived).await;
            }
        }
    }

    async fn wait_until_prepared(&self) {
        if self.row.1 != Nothing {
            self.client.wait_for_status(&self.id, self.row.1.name()).await;
        }
    }

    async fn fire(&self) {
        let fired = self.client.try_send("POST", &format!("/timers/{}/fire", self.id), Some("{}".to_owned())).await;
        assert_eq!(fired.expect("an answer").status, 200, "{}", self.key);
    }

    /// The second request: its answer, and the timer behind it.
    async fn ask_again(&self) {
        let (mode, state, content, told, payload, _) = *self.row;
        let asked_at = now();
        let second_at = instant(asked_at + SECOND_AFTER_MICROS);
        let (wanted, at) = if content == Same { ("first", FIRST_AT) } else { ("second", second_at.as_str()) };
        let before = if state == Nothing { Value::Null } else { self.client.timer(&self.id).await };
        let answer = self.ask(wanted, at).await;
        let shown = self.client.timer(&self.id).await;

        let is_changed = matches!(told, Created | Replaced);
        if mode == V1 || mode == V1Create {
            self.check_v1_answer(&answer, is_changed, payload);
        } else {
            self.check_native_answer(&answer, is_changed);
        }
        assert_eq!(shown["callback_config"]["payload"], payload, "{}: {shown}", self.key);
        if is_changed {
            let due = micros(shown["execute_at"].as_str().expect("a due time"));
            // On a slow machine its time may have come while it was read.
            if now() < due {
                let status = self.changed_status();
                assert_eq!((&shown["status"], &shown["attempt"]), (&json!(status), &json!(0)), "{}: {shown}", self.key);
            }
            // A delay counts from when the service takes the request.
            let latest = if mode == Postpone { now() + SECOND_AFTER_MICROS } else { micros(at) };
            assert!((micros(at)..=latest).contains(&due), "{}: {shown}", self.key);
        } else {
            assert_eq!(without_countdown(shown), without_countdown(before), "{} is left alone", self.key);
        }
    }

    /// The status of the timer if the second request has changed it.
    fn changed_status(&self) -> &'static str {
        if self.row.1 == Paused { "paused" } else { "pending" }
    }

    fn check_native_answer(&self, answer: &Answer, is_changed: bool) {
        let (_, state, _, told, ..) = *self.row;
        let words = match told {
            Created => (201, 0, "timer created successfully"),
            Existing => (200, 0, "timer already exists"),
            Replaced => (200, 0, "timer replaced successfully"),
            Taken => (409, 6, "a timer with this key exists and has other content"),
            Busy => (409, 6, "the timer with this key is being delivered: try again when it has ended"),
        };
        let said = (answer.status, answer.json()["code"].as_i64().expect("a code"), answer.message());
        assert_eq!(said, (words.0, words.1, words.2.to_owned()), "{}", self.key);
        if answer.is_success() {
            let status = if is_changed { self.changed_status() } else { state.name() };
            let data = answer.json()["data"].clone();
            assert_eq!((&data["id"], &data["status"]), (&json!(self.id), &json!(status)), "{}: {data}", self.key);
        }
    }

    fn check_v1_answer(&self, answer: &Answer, is_changed: bool, payload: &str) {
        let (_, state, _, told, ..) = *self.row;
        let body = answer.json();
        let error = match told {
            Created | Existing | Replaced => {
                let status = if is_changed { "pending" } else { state.name() };
                let said = (answer.status, &body["id"], &body["status"], &body["payload"]);
                assert_eq!(said, (200, &json!(self.key), &json!(status), &json!(payload)), "{}", self.key);
                return;
            }
            Taken => "TIMER_ALREADY_EXISTS",
            Busy => "TIMER_NOT_PENDING",
        };
        let said = (answer.status, &body["error"], &body["details"]["status"]);
        assert_eq!(said, (409, &json!(error), &json!(state.name())), "{}: {body}", self.key);
    }

    async fn fire_what_is_far(&self) {
        let timer = self.client.timer(&self.id).await;
        if timer["status"] == "pending" && timer["execute_at"] == FIRST_AT {
            self.fire().await;
        }
    }

    /// Every content once for each time it was to be delivered, and the new time waited for where there is one.
    async fn check_what_arrived(&self) {
        let (mode, _, content, told, _, expected) = *self.row;
        let exchanges = self.receiver.exchanges(&self.path());
        let is_v1 = mode == V1 || mode == V1Create;
        let arrived = exchanges.iter().map(|exchange| exchange.call.json());
        let arrived: Vec<Value> = arrived.map(|body| if is_v1 { body["payload"].clone() } else { body }).collect();
        assert_eq!(arrived, expected, "{}", self.key);
        if content == Other && matches!(told, Created | Replaced) {
            let due = self.client.timer(&self.id).await["execute_at"].as_str().map(micros).expect("a due time");
            let last = &exchanges.last().expect("checked above").call;
            assert!(last.arrived >= due, "{} is early by {} µs", self.key, due - last.arrived);
            assert_eq!(micros(last.header("x-timer-scheduled-at")), due, "{}", self.key);
        }
    }
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Nothing => "nothing",
            Pending => "pending",
            Executing => "executing",
            Completed => "completed",
            Failed => "failed",
            Canceled => "canceled",
            Paused => "paused",
            Expired => "expired",
        }
    }
}

/// The time that is left goes by, whatever happens.
fn without_countdown(mut timer: Value) -> Value {
    timer["time_left"] = Value::Null;
    timer
}
