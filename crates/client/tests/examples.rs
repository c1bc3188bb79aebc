//! The examples, started as a user starts them, against a `timer dev` of their own.
#![expect(clippy::expect_used, reason = "helpers of tests are tests")]

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use client::{
    Error, Json, NewTimer,
    dev::{Calls, TimerDev},
};

const LINES_MAX: usize = 80;

/// Where `cargo build --examples` has put it, beside the directory of this test.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("the path of this test");
    let target = test.ancestors().nth(2).expect("the directory of the build");
    Command::new(target.join("examples").join(name))
}

fn output(dev: &TimerDev, name: &str, argument: &str) -> String {
    let output = example(name).arg(argument).env("TIMER_URL", dev.url()).env("TIMER_API_KEY", dev.api_key()).output();
    let output = output.expect("the example is built");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
#[ignore = "needs the binary: scripts/sdk_test.sh rust"]
async fn a_reminder_moves_and_is_canceled() -> Result<(), Error> {
    let dev = TimerDev::start().await?;
    let text = output(&dev, "reminder", &dev.receiver("/cart"));
    assert!(text.ends_with("cart-4711 pending\ncart-4712 canceled\n"), "{text}");
    dev.advance("2d").await?;
    let calls = dev.wait_for(&Calls::at("/cart"), 1).await?;
    assert_eq!((calls.len(), calls[0].body.as_str()), (1, r#"{"cart":4711}"#));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the binary: scripts/sdk_test.sh rust"]
async fn an_order_is_released_when_its_time_is_over() -> Result<(), Error> {
    let dev = TimerDev::start().await?;
    assert_eq!(output(&dev, "saga-timeout", &dev.receiver("/release")), "order-42 is paid\n");
    let calls = dev.wait_for(&Calls::at("/release"), 1).await?;
    assert_eq!(calls[0].body, r#"{"order":"order-43"}"#);
    Ok(())
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
#[ignore = "needs the binary: scripts/sdk_test.sh rust"]
async fn a_receiver_answers_in_both_protocols() -> Result<(), Error> {
    let dev = TimerDev::start().await?;
    let mut command = example("receiver");
    command.arg("127.0.0.1:0").env("SIGNING_SECRET", dev.signing_secret()).stdout(Stdio::piped());
    let mut receiver = Running(command.spawn().expect("the example is built"));
    let mut lines = BufReader::new(receiver.0.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().and_then(Result::ok).expect("a line");
    let url = line();
    let payload = Json::text(r#"{"cart":4711}"#)?;
    dev.client.timers().create(&NewTimer::http(format!("{url}/remind")).delay("1s").payload(payload)).await?;
    let job = Json::text(r#"{"name":"job 7","done":true}"#)?;
    let poll = client::Callback::http(format!("{url}/poll")).timer_protocol().payload(job);
    dev.client.timers().create(&NewTimer::new(poll).delay("2s")).await?;
    dev.advance("2s").await?;
    let (first, second) = (line(), line());
    assert!(first.contains("attempt 1") && first.ends_with(r#"{"cart":4711}"#), "{first}");
    assert_eq!(second, "job 7 is done");
    Ok(())
}

#[test]
fn each_example_is_short() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rust");
    let sources: Vec<PathBuf> =
        ["reminder", "receiver", "saga-timeout", "test-without-waiting"].map(|name| examples.join(name).join("main.rs")).into();
    for path in sources {
        let lines = std::fs::read_to_string(&path).expect("an example").lines().count();
        assert!(lines < LINES_MAX, "{}: {lines}", path.display());
    }
}
