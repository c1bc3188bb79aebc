//! The commands of the command line that ask a service.

mod tables;

use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::rig::{API_KEY, Backend, Receiver, Service, beside_others, blocking, callback_to, eventually, for_each_store, timer};

for_each_store!(
    timers_are_looked_after_from_the_command_line,
    what_is_exported_and_imported_is_the_same,
    an_interrupted_import_goes_on_where_it_stopped,
    copies_of_calls_are_forwarded_and_what_happens_is_followed,
    a_login_keeps_a_key_that_was_tried,
    top_fills_the_screen_and_ends_with_q,
);

/// The command line, used against one service.
struct Shell<'a> {
    home: &'a Path,
    url: String,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
struct Said {
    exit: i32,
    out: String,
    err: String,
}

impl Shell<'_> {
    fn at<'a>(backend: &'a Backend, service: &Service) -> Shell<'a> {
        Shell { home: backend.home(), url: format!("http://127.0.0.1:{}", service.port()) }
    }

    fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, &[], "")
    }

    fn run_with(&self, arguments: &[&str], settings: &[(&str, &str)], input: &str) -> Said {
        let mut command = timer(self.home);
        command.args(arguments).envs([("TIMER_URL", self.url.as_str()), ("API_KEY", API_KEY)]).envs(settings.iter().copied());
        said(command, input)
    }

    /// The JSON that a command that must succeed printed.
    fn json(&self, arguments: &[&str]) -> Value {
        let said = self.run(arguments);
        assert_eq!(said.exit, 0, "{arguments:?}: {said:?}");
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said:?}"))
    }
}

fn said(mut command: Command, input: &str) -> Said {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("input is read");
    let Output { status, stdout, stderr } = child.wait_with_output().expect("the binary ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Said { exit: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

async fn timers_are_looked_after_from_the_command_line(backend: Backend) {
    let _machine = beside_others().await;
    let service = Service::start(&backend).await;
    let shell = Shell::at(&backend, &service);
    let receiver = Receiver::start();
    let url = receiver.url("/hook");

    // Create, in every way that matters, and look at it.
    let payload = r#"{"n": 1.10, "big": 12345678901234567890}"#;
    let create =
        ["create", &url, "--in", "1h", "--payload", "-", "--key", "order-7", "--ns", "shop", "--meta", "customer=42", "-H"];
    let created = shell.run_with(&[&create[..], &["X-A: b", "--retries", "2"]].concat(), &[], payload);
    assert_eq!(created.exit, 0, "{created:?}");
    let created: Value = serde_json::from_str(&created.out).expect("a line of JSON");
    let id = created["id"].as_str().expect("an id").to_owned();
    let shown = shell.run(&["get", "order-7", "--ns", "shop"]);
    assert!(shown.out.contains(payload), "{shown:?}");
    let shown = shell.json(&["get", &id, "-o", "json"]);
    assert_eq!((&shown["metadata"], &shown["callback_config"]["headers"]["X-A"]), (&json!({"customer": 42}), &json!("b")));
    let dry = shell.json(&["create", "nats:a.b", "--at", "2030-01-31T12:00:00Z", "--dry-run"]);
    assert_eq!((&dry["callback"]["topic"], &dry["execute_at"]), (&json!("a.b"), &json!("2030-01-31T12:00:00Z")));

    // Lists, by words, in every format.
    let second = shell.json(&["create", &url, "--in", "2h", "--ns", "shop", "--id", "01890a5d-ac96-774b-bcce-b302099a8057"]);
    let list = |more: &[&str]| shell.run(&[&["list", "ns:shop"], more].concat());
    assert_eq!(list(&["-o", "id", "key:order-*"]).out.trim(), id);
    assert_eq!(list(&["due:<90m", "--columns", "key,status", "-o", "csv"]).out, "key,status\norder-7,pending\n");
    let table = list(&["-o", "table", "--columns", "key,status,namespace", "--sort", "execute_at", "--order", "asc"]);
    assert_eq!(table.out, "KEY      STATUS   NAMESPACE\norder-7  pending  shop\n-        pending  shop\n");
    assert_eq!(list(&["--limit", "1"]).out.lines().count(), 1);
    let all: Value = serde_json::from_str(&list(&["--all", "-o", "json", "meta.customer:42"]).out).expect("an array");
    assert_eq!(all.as_array().map(Vec::len), Some(1));

    // Change one.
    let second = second["id"].as_str().expect("an id");
    assert_eq!(shell.json(&["pause", second])["status"], "paused");
    assert_eq!(shell.json(&["resume", second])["status"], "pending");
    let before = shell.json(&["get", second])["execute_at"].clone();
    let moved = shell.json(&["reschedule", second, "--by", "+30m"]);
    assert_ne!(moved["execute_at"], before);
    let updated = shell.run_with(&["update", second, "--payload", "-", "--meta", "a=b"], &[], payload);
    assert_eq!(updated.exit, 0, "{updated:?}");
    assert!(shell.run(&["get", second]).out.contains(payload));
    let stale = shell.run(&["update", second, "--in", "1h", "--if-revision", "1"]);
    assert_eq!((stale.exit, stale.out.as_str()), (6, ""), "{stale:?}");

    // Fire one, and follow it to its end.
    assert_eq!(shell.json(&["fire", "order-7", "--ns", "shop"])["id"], id.as_str());
    assert_eq!(shell.run(&["watch", &id, "--timeout", "20s"]).exit, 0);
    assert_eq!(receiver.calls()[0].body, payload);
    let failing = shell.run(&["create", "http://127.0.0.1:9/", "--in", "10ms", "--wait", "--timeout", "20s", "-o", "id"]);
    assert_eq!(failing.exit, 9, "{failing:?}");
    let failing = failing.out.trim().to_owned();
    assert_eq!(shell.json(&["attempts", &failing])["number"], 1);
    assert_eq!(shell.json(&["retry", &failing])["id"], failing.as_str());
    assert_eq!(shell.run(&["create", &url, "--in", "1h", "--wait", "--timeout", "300ms"]).exit, 8);

    // Many at once: shown, asked for, done.
    let refused = shell.run(&["cancel", "--filter", "ns:shop status:pending"]);
    assert_eq!(refused.exit, 2, "there is no terminal to ask on: {refused:?}");
    assert_eq!(shell.run(&["cancel", "--filter", ""]).exit, 2);
    let dry = shell.json(&["cancel", "--filter", "ns:shop status:pending", "--dry-run", "-o", "json"]);
    assert_eq!(dry["matched"], 1);
    let shifted = shell.json(&["reschedule", "--filter", "ns:shop status:pending", "--by", "+1h", "--yes"]);
    assert_eq!((&shifted["changed"], &shifted["skipped"]), (&json!(1), &json!(0)));
    assert_eq!(shell.json(&["cancel", "--filter", "ns:shop status:pending", "--yes", "--expected-max", "5"])["changed"], 1);

    // What is refused says why, and ends with the code of the envelope.
    let missing = shell.run(&["get", "01890a5d-ac96-774b-bcce-b302099a8058"]);
    assert_eq!((missing.exit, missing.err.as_str()), (3, "timer: timer not found.\n"));
    let missing = shell.run(&["get", "01890a5d-ac96-774b-bcce-b302099a8058", "-o", "json"]);
    assert_eq!(
        (missing.out.as_str(), serde_json::from_str::<Value>(&missing.err).expect("an envelope")["code"].as_u64()),
        ("", Some(3))
    );
    assert_eq!(shell.run(&["create", &url, "--in", "1h", "--on-conflict", "odd", "--key", "k"]).exit, 2);
    assert_eq!(shell.run(&["list", "colour:red"]).exit, 2);
    assert_eq!(shell.run_with(&["list"], &[("API_KEY", "wrong")], "").exit, 4);
    assert_eq!(shell.run(&["list", "--url", "http://127.0.0.1:9", "--request-retries", "0"]).exit, 7);

    // What is due, and how the service does.
    shell.json(&["create", &url, "--in", "5m", "--key", "soon"]);
    let next = shell.run(&["next", "-o", "table", "--utc"]);
    assert!(next.out.contains("█") && next.out.contains("soon"), "{next:?}");
    let top = shell.run(&["top", "--once"]);
    assert!(top.out.contains("pending") && top.out.contains("nodes"), "{top:?}");
}

async fn what_is_exported_and_imported_is_the_same(backend: Backend) {
    let _machine = beside_others().await;
    let service = Service::start(&backend).await;
    let (client, shell) = (service.client(), Shell::at(&backend, &service));
    let callback = json!({"type": "http", "url": "http://127.0.0.1:9/x", "payload": {"a": [1.5, null]}, "headers": {"x-a": "b"}, "timeout": "7s"});
    for n in 0..1_100 {
        let mut timer = json!({"delay": format!("{}s", 3_600 + n), "callback": callback});
        if n % 2 == 0 {
            timer["key"] = format!("k{n}").into();
            timer["namespace"] = "shop".into();
            timer["group"] = "g".into();
            timer["metadata"] = json!({"n": n});
            timer["retry_policy"] = json!({"max_retries": 3, "initial_interval": "10s"});
            timer["expires_after"] = "1h".into();
            timer["on_failure"] = callback_to("http://127.0.0.1:9/failed", &json!(1));
        }
        let id = client.create(&timer).await;
        match n {
            1 => assert_eq!(shell.json(&["pause", &id])["status"], "paused"),
            2 => assert_eq!(shell.json(&["cancel", &id])["status"], "canceled"),
            _ => {}
        }
    }
    let exported = shell.run(&["export", "-o", "all.ndjson"]);
    assert_eq!((exported.exit, exported.err.as_str()), (0, "1100 timers are in all.ndjson.\n"));
    let csv = shell.run(&["export", "ns:shop", "-o", "all.csv"]);
    assert_eq!((csv.exit, csv.err.as_str()), (0, "550 timers are in all.csv.\n"));

    let other_backend = Backend::sqlite();
    let other = Service::start(&other_backend).await;
    let other_shell = Shell { home: backend.home(), ..Shell::at(&other_backend, &other) };
    // The second import finds everything there: that is how one that was interrupted goes on.
    let dry = other_shell.run(&["import", "all.ndjson", "--dry-run"]);
    assert_eq!(dry.err, "1099 timers would be registered, 0 were there, 1 have ended and were skipped.\n");
    let imported = other_shell.run(&["import", "all.ndjson"]);
    assert_eq!(
        (imported.exit, imported.err.as_str()),
        (0, "1099 timers registered, 0 were there, 1 have ended and were skipped.\n"),
    );
    let imported = other_shell.run(&["import", "all.ndjson", "--rate", "100000"]);
    assert_eq!(imported.err, "0 timers registered, 1099 were there, 1 have ended and were skipped.\n");
    assert_eq!(lines(&shell, "status:pending,paused"), lines(&other_shell, ""));
    let piped = other_shell.run_with(&["import", "-"], &[], &shell.run(&["export"]).out);
    assert_eq!(piped.err, "0 timers registered, 1099 were there, 1 have ended and were skipped.\n");

    // What is refused is kept, with the reason.
    std::fs::write(backend.home().join("bad.ndjson"), "{\n{\"status\":\"pending\"}\n").expect("a file");
    let refused = other_shell.run(&["import", "bad.ndjson"]);
    assert_eq!(refused.exit, 2, "{refused:?}");
    let rejects = std::fs::read_to_string(backend.home().join("bad.ndjson.rejects.ndjson")).expect("rejects");
    assert_eq!(rejects.lines().count(), 2, "{rejects}");
}

async fn an_interrupted_import_goes_on_where_it_stopped(backend: Backend) {
    const TIMERS: usize = 1_100;
    let _machine = beside_others().await;
    let service = Service::start(&backend).await;
    let (client, shell) = (service.client(), Shell::at(&backend, &service));
    let soon = client.create(&json!({"delay": "1d", "callback": callback_to("http://127.0.0.1:9/", &json!(1))})).await;
    let due = shell.json(&["get", &soon])["execute_at"].clone();
    shell.json(&["cancel", "--filter", "status:pending", "--yes"]);
    let line = |n: usize| {
        let status = if n.is_multiple_of(10) { "paused" } else { "pending" };
        let callback = json!({"type": "http", "url": "http://127.0.0.1:9/x", "payload": {"n": n}});
        json!({"key": format!("k{n}"), "namespace": "shop", "status": status, "execute_at": due, "callback_config": callback})
    };
    let text: String = (0..TIMERS).map(|n| format!("{}\n", line(n))).collect();
    std::fs::write(backend.home().join("all.ndjson"), text).expect("a file");

    // The first batch is sent at once, and the second after it has been waited for.
    let mut import = timer(backend.home());
    import.args(["import", "all.ndjson", "--rate", "400"]).envs([("TIMER_URL", shell.url.as_str()), ("API_KEY", API_KEY)]);
    let mut import = import.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs");
    eventually("the first of them", Duration::from_secs(30), async || (client.count("pending").await > 0).then_some(())).await;
    import.kill().and_then(|()| import.wait()).expect("an end");
    let interrupted = lines(&shell, "ns:shop").len();
    assert!((1..TIMERS).contains(&interrupted), "{interrupted}");

    let resumed = shell.run(&["import", "all.ndjson"]);
    let counts: Vec<usize> = resumed.err.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    assert_eq!((resumed.exit, counts[0] + counts[1], counts[2]), (0, TIMERS, 0), "{resumed:?}");
    assert!(counts[1] > 0, "{resumed:?}");
    let kept = lines(&shell, "ns:shop");
    assert_eq!(kept.len(), TIMERS);
    for timer in kept {
        let n: usize = timer["callback_config"]["payload"]["n"].as_u64().and_then(|n| n.try_into().ok()).expect("a payload");
        let expected = line(n);
        for member in ["key", "namespace", "status", "execute_at"] {
            assert_eq!(timer[member], expected[member], "{n}: {member}");
        }
    }
}

/// What an export holds, without what every registration has of its own.
fn lines(shell: &Shell<'_>, filter: &str) -> Vec<Value> {
    let said = shell.run(&["export", filter]);
    assert_eq!(said.exit, 0, "{}", said.err);
    let mut timers: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for timer in &mut timers {
        for own in ["created_at", "updated_at", "paused_at", "time_left", "revision"] {
            timer[own] = Value::Null;
        }
    }
    timers.sort_by_key(|timer| timer["id"].as_str().map(str::to_owned));
    timers
}

async fn copies_of_calls_are_forwarded_and_what_happens_is_followed(backend: Backend) {
    let _machine = beside_others().await;
    let service = Service::start(&backend).await;
    let shell = Shell::at(&backend, &service);
    let (receiver, local) = (Receiver::start(), Receiver::start());
    let settings = [("TIMER_URL", shell.url.as_str()), ("TIMER_API_KEY", API_KEY)];
    let (to, secret) = (local.url("/copies"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let mut listen = timer(backend.home());
    listen.args(["listen", "ns:shop", "--forward-to", &to, "--secret", secret, "--replay", "1h", "--limit", "2"]).envs(settings);
    let before =
        shell.json(&["create", &receiver.url("/x"), "--in", "10ms", "--ns", "shop", "--payload", r#"{"n":1}"#, "--wait"]);
    let listening = std::thread::spawn(move || said(listen, ""));
    eventually("the first copy", Duration::from_secs(20), async || (!local.calls().is_empty()).then_some(())).await;
    // The stream of events is open by then, or opens from before this timer ends.
    let after = eventually("a second copy", Duration::from_secs(30), async || {
        let created = shell.json(&["create", &receiver.url("/x"), "--in", "10ms", "--ns", "shop", "--payload", "2", "--wait"]);
        (local.calls().len() > 1).then_some(created)
    })
    .await;
    assert_eq!(blocking(|| listening.join()).expect("no panic").exit, 0);
    let calls = local.calls();
    assert_eq!((calls[0].body.as_str(), calls[0].timer_id()), (r#"{"n":1}"#, before["id"].as_str().unwrap_or_default()));
    assert_eq!(after["namespace"], "shop");
    let signed = shell.run_with(
        &[
            "verify",
            "--secret",
            secret,
            "--id",
            calls[0].header("webhook-id"),
            "--timestamp",
            calls[0].header("webhook-timestamp"),
            "--signature",
            calls[0].header("webhook-signature"),
        ],
        &[],
        &calls[0].body,
    );
    assert_eq!((signed.exit, signed.out.as_str()), (0, "valid\n"), "{signed:?}");
    let all = shell.run(&["watch", "ns:shop", "--types", "finished", "--limit", "1", "--timeout", "1s", "--after", "x"]);
    assert_eq!(all.exit, 2, "an id that is none: {all:?}");
    let mut watch = timer(backend.home());
    watch.args(["watch", "ns:shop", "--types", "finished", "--limit", "1"]).envs(settings);
    let watching = std::thread::spawn(move || said(watch, ""));
    // As above: those that end before the stream is open are not seen.
    eventually("an event", Duration::from_secs(30), async || {
        shell.json(&["create", &receiver.url("/x"), "--in", "10ms", "--ns", "shop", "--wait"]);
        watching.is_finished().then_some(())
    })
    .await;
    let seen = blocking(|| watching.join()).expect("no panic");
    assert_eq!((seen.exit, seen.out.lines().count()), (0, 1), "{seen:?}");
    assert!(seen.out.contains("finished") && seen.out.contains("shop"), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_no_service_works_without_one() {
    let _machine = beside_others().await;
    let backend = Backend::sqlite();
    let shell = Shell { home: backend.home(), url: "http://127.0.0.1:9".to_owned() };
    let home = backend.home().to_str().expect("a path");

    // Signatures.
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let sign = ["sign", "--secret", secret, "--id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "--timestamp", "1614265330"];
    let signed = shell.run_with(&sign, &[], r#"{"test": 2432232314}"#);
    assert!(signed.out.contains("webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\n"), "{signed:?}");
    let verify = [&["verify"], &sign[1..], &["--signature", "v1,AAAA"]].concat();
    assert_eq!(shell.run_with(&verify, &[], "{}").exit, 1);

    // Profiles: the key is never in the file.
    std::fs::write(backend.home().join("key"), "Tr0ub4dor-0123456789abcdef0123456789\n").expect("a file");
    let profile = |arguments: &[&str]| {
        let mut command = timer(backend.home());
        command.arg("profile").args(arguments).env("HOME", home);
        said(command, "")
    };
    assert_eq!(profile(&["add", "local", "--url", "http://127.0.0.1:9", "--key-file", "key"]).exit, 0);
    assert_eq!(profile(&["add", "prod", "--url", "https://timers.example", "--key-command", "cat key"]).exit, 0);
    assert_eq!(profile(&["use", "prod"]).exit, 0);
    let listed = profile(&["list"]);
    assert!(listed.out.contains("*  prod") && !listed.out.contains("Tr0ub4dor"), "{listed:?}");
    let file = backend.home().join(".config/timer/config.toml");
    assert!(!std::fs::read_to_string(&file).expect("profiles").contains("Tr0ub4dor"));
    let mut used = timer(backend.home());
    used.args(["get", "x", "--profile", "local", "--request-retries", "0", "-v"]).env("HOME", home);
    let used = said(used, "");
    assert!(used.exit == 7 && used.err.contains("GET http://127.0.0.1:9/") && !used.err.contains("Tr0ub4dor"), "{used:?}");
    assert_eq!(profile(&["remove", "prod"]).exit, 0);
    assert_eq!(profile(&["use", "prod"]).exit, 2);

    // Completions, each read by its shell where that is installed.
    for (other, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let completion = shell.run(&["completion", other]);
        let file = backend.home().join(format!("timer.{other}"));
        std::fs::write(&file, &completion.out).expect("a file");
        assert!(completion.exit == 0 && completion.out.contains("timer"), "{other}");
        match Command::new(other).arg(check).arg(file).output() {
            Ok(checked) => assert!(checked.status.success() && checked.stderr.is_empty(), "{other}: {checked:?}"),
            Err(_) => eprintln!("{other} is not installed: its completions were not read"),
        }
    }

    // Manual pages, set without a warning.
    assert_eq!(shell.run(&["man", "pages"]).exit, 0);
    let pages: Vec<_> =
        std::fs::read_dir(backend.home().join("pages")).expect("pages").map(|page| page.expect("a page").path()).collect();
    for page in ["timer.1", "timer-create.1", "timer-list.1", "timer-login.1"] {
        assert!(pages.iter().any(|path| path.ends_with(page)), "{page}");
    }
    match Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8", "-Kutf8"]).args(&pages).output() {
        Ok(set) => assert!(set.status.success() && set.stderr.is_empty(), "{set:?}"),
        Err(_) => eprintln!("groff is not installed: manual pages were not set"),
    }

    // Pages of a service are printed where there is no terminal.
    let docs = shell.run(&["docs"]);
    assert_eq!((docs.exit, docs.out.as_str()), (0, "http://127.0.0.1:9/docs\n"), "{docs:?}");
}

async fn a_login_keeps_a_key_that_was_tried(backend: Backend) {
    let _machine = beside_others().await;
    let service = Service::start(&backend).await;
    let shell = Shell::at(&backend, &service);
    let at_home = |arguments: &[&str], input: &str| {
        let mut command = timer(backend.home());
        command.args(arguments).env("HOME", backend.home());
        said(command, input)
    };
    let refused = at_home(&["login", &shell.url, "--name", "local"], "wrong\n");
    assert_eq!(refused.exit, 4, "{refused:?}");
    assert!(!backend.home().join(".config/timer/config.toml").exists());
    assert_eq!(at_home(&["login", &shell.url, "--name", "../evil"], API_KEY).exit, 2);
    let kept = at_home(&["login", &shell.url], API_KEY);
    assert_eq!(kept.exit, 0, "{kept:?}");
    assert!(kept.err.starts_with("127.0.0.1 is ") && !kept.err.contains(API_KEY), "{kept:?}");
    let file = backend.home().join(".config/timer/keys/127.0.0.1");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).expect("a file with the key"));
    assert_eq!(mode & 0o777, 0o600);

    // The profile is used from now on, and the page of a timer is found by its key.
    let created = at_home(&["create", "http://127.0.0.1:9/", "--in", "1h", "--key", "order-7", "-o", "id"], "");
    assert_eq!(created.exit, 0, "{created:?}");
    let page = at_home(&["open", "order-7"], "");
    assert_eq!((page.exit, page.out), (0, format!("{}/console/timers/{}\n", shell.url, created.out.trim())));
}

async fn top_fills_the_screen_and_ends_with_q(backend: Backend) {
    let _machine = beside_others().await;
    let service = Service::start(&backend).await;
    // `script` gives the command a terminal of its own.
    let top = format!("stty cols 130 rows 40; {} top --every 100ms", env!("CARGO_BIN_EXE_timer"));
    let mut command = Command::new("script");
    command.args(["-qec", &top, "screen"]).current_dir(backend.home()).env("TERM", "xterm").env("API_KEY", API_KEY);
    command.env("TIMER_URL", format!("http://127.0.0.1:{}", service.port()));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program `script`");
    let screen = backend.home().join("screen");
    eventually("a frame", Duration::from_secs(20), async || {
        let shown = String::from_utf8_lossy(&std::fs::read(&screen).unwrap_or_default()).into_owned();
        shown.contains("destinations").then_some(())
    })
    .await;
    child.stdin.take().expect("a pipe").write_all(b"q").expect("a key");
    let ended = blocking(|| child.wait()).expect("an end");
    let shown = String::from_utf8_lossy(&std::fs::read(&screen).unwrap_or_default()).into_owned();
    assert!(ended.success() && shown.contains("\u{1b}[?1049l"), "the screen is given back: {shown}");
}
