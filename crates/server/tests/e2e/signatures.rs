//! Signatures of real calls, verified by an independent implementation of Standard Webhooks.

mod bodies;

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use crate::rig::{
    Backend, Call, Chance, Client, Receiver, Service, beside_others, beside_the_tests, callback_to, for_each_store, python,
};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_plJ3nmyCDGBKInavdOK15jsl/+k8vgcgNzIhhhhZ1Yg=";
/// The secret of one namespace alone.
const OWN: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDazX0BxJ8LXA=";

const CALLBACKS: usize = 1_000;
const CALLERS: usize = 16;
const SOON: Duration = Duration::from_secs(60);

for_each_store!(
    a_thousand_callbacks_are_verified_by_another_implementation,
    while_one_secret_replaces_another_a_receiver_may_know_either,
    a_namespace_with_a_secret_of_its_own_signs_with_no_other,
);

async fn a_thousand_callbacks_are_verified_by_another_implementation(backend: Backend) {
    let _machine = beside_others().await;
    // Before a rotation, and during one.
    for (secrets, by_new) in [(OLD.to_owned(), false), (format!("{NEW},{OLD}"), true)] {
        let receiver = Receiver::start();
        let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("SIGNING_SECRET", &secrets)]).await;
        let calls = call_a_thousand_times(&service.client(), &receiver).await;
        let checks: Vec<_> = calls.iter().flat_map(|call| checks_of(call, by_new)).collect();
        assert_verdicts(&backend, &checks, "random bodies");
        service.stop().await;
    }
}

/// Registers random bodies and lets them be sent; each arrives as it was given.
async fn call_a_thousand_times(client: &Client, receiver: &Receiver) -> Vec<Call> {
    let seed = Chance::new("random bodies").seed();
    let bodies = bodies::random(seed, CALLBACKS);
    let register = async |body: &String| {
        let url = json!(receiver.url("/signed"));
        // As text: a value in between would write some of it in another way.
        let text = format!(r#"{{"delay": "0s", "callback": {{"type": "http", "url": {url}, "payload": {body}}}}}"#);
        let answer = client.post(&text).await;
        assert_eq!(answer.status, 201, "seed {seed}: {}", answer.text);
        (answer.id(), body.clone())
    };
    let sent: HashMap<_, _> = stream::iter(&bodies).map(register).buffer_unordered(CALLERS).collect().await;
    let calls = receiver.wait_for(CALLBACKS, SOON).await;
    assert_eq!(calls.len(), CALLBACKS);
    for call in &calls {
        assert_eq!(Some(&call.body), sent.get(call.timer_id()), "seed {seed}: the body is the payload, byte for byte");
    }
    calls
}

/// What must be said of a call that was signed with the old secret, and perhaps with the new one too.
fn checks_of(call: &Call, by_new: bool) -> [(Check, bool); 6] {
    let other = |name: &str, value: String| Check::of(call, OLD).with(name, value);
    let seconds: i64 = call.header("webhook-timestamp").parse().expect("a number of seconds");
    [
        (Check::of(call, OLD), true),
        (Check::of(call, NEW), by_new),
        (Check::of(call, OWN), false),
        (other("webhook-id", format!("{}0", call.header("webhook-id"))), false),
        (other("webhook-timestamp", (seconds - 1).to_string()), false),
        (Check::of(call, OLD).with_body(format!("{} ", call.body)), false),
    ]
}

async fn while_one_secret_replaces_another_a_receiver_may_know_either(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let mut checks = Vec::new();
    for (secrets, by_old, by_new) in
        [(OLD.to_owned(), true, false), (format!("{NEW},{OLD}"), true, true), (NEW.to_owned(), false, true)]
    {
        let mut service = Service::start_with(&backend, &[("MIN_DELAY", "0s"), ("SIGNING_SECRET", &secrets)]).await;
        let call = called(&service.client(), &receiver, "default").await;
        checks.extend([(Check::of(&call, OLD), by_old), (Check::of(&call, NEW), by_new), (Check::of(&call, OWN), false)]);
        service.stop().await;
    }
    assert_verdicts(&backend, &checks, "a rotation");
}

async fn a_namespace_with_a_secret_of_its_own_signs_with_no_other(backend: Backend) {
    let _machine = beside_others().await;
    let receiver = Receiver::start();
    let file = backend.home().join("namespaces.json");
    std::fs::write(&file, json!({"billing": {"signing_secret": OWN}, "plain": {}}).to_string()).expect("a file");
    let file = file.display().to_string();
    let mut checks = Vec::new();
    for (common, by_common) in [(Some(OLD), true), (None, false)] {
        let mut settings = vec![("MIN_DELAY", "0s"), ("NAMESPACES_FILE", file.as_str())];
        settings.extend(common.map(|secret| ("SIGNING_SECRET", secret)));
        let mut service = Service::start_with(&backend, &settings).await;
        for (namespace, by_own, by_common) in
            [("billing", true, false), ("plain", false, by_common), ("default", false, by_common)]
        {
            let call = called(&service.client(), &receiver, namespace).await;
            assert_eq!(call.headers.contains_key("webhook-signature"), by_own || by_common, "{namespace}");
            checks.extend([(Check::of(&call, OWN), by_own), (Check::of(&call, OLD), by_common)]);
        }
        service.stop().await;
    }
    assert_verdicts(&backend, &checks, "a namespace");
}

/// The call of a new timer in this namespace.
async fn called(client: &Client, receiver: &Receiver, namespace: &str) -> Call {
    let before = receiver.count();
    let callback = callback_to(&receiver.url("/signed"), &json!({"namespace": namespace}));
    let id = client.create(&json!({"delay": "0s", "namespace": namespace, "callback": callback})).await;
    let call = receiver.wait_for(before + 1, SOON).await.pop().expect("a call");
    assert_eq!(call.timer_id(), id);
    call
}

/// What a receiver that knows this secret has to judge.
struct Check(Value);

impl Check {
    fn of(call: &Call, secret: &str) -> Self {
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers: HashMap<_, _> = names.map(|name| (name, call.header(name))).into();
        Self(json!({"secret": secret, "headers": headers, "body": call.body}))
    }

    fn with(mut self, header: &str, value: String) -> Self {
        self.0["headers"][header] = value.into();
        self
    }

    fn with_body(mut self, body: String) -> Self {
        self.0["body"] = body.into();
        self
    }
}

/// Lets the other implementation judge them all.
fn assert_verdicts(backend: &Backend, checks: &[(Check, bool)], what: &str) {
    let file = backend.home().join("checks");
    let lines: String = checks.iter().map(|(check, _)| format!("{}\n", check.0)).collect();
    std::fs::write(&file, lines).expect("a file in the directory of the test");
    let script = beside_the_tests("signatures/verify.py");
    let output = crate::rig::blocking(|| python("signatures").arg(script).arg(&file).output().expect("Python runs"));
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    let verdicts: Vec<bool> = said.lines().map(|line| line.parse().expect("true or false")).collect();
    assert_eq!(verdicts.len(), checks.len(), "{what}");
    for (verdict, (check, expected)) in verdicts.iter().zip(checks) {
        assert_eq!(verdict, expected, "{what}: {}", check.0);
    }
}
