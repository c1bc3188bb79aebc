//! `timer dev`: a service to try out and to test with, with everything made up that `timer serve` asks for.

mod advance;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use delivery::SigningSecrets;
use dev::{Answers, CheckSignature, DevTools, Inbox, MovableClock, Receiver};
use serde_json::json;

use self::advance::Advancer;
use crate::{
    cli::DevOptions,
    exit::{Failure, print, say},
    serve::{self, Parts, Started},
    settings::{ANSWER_BYTES_IN_DEV, Console, Defaults, Settings},
    telemetry,
    values::Secret,
};

pub fn main(options: &DevOptions) -> Result<(), Failure> {
    telemetry::log(&options.service.logs);
    let defaults = Defaults {
        api_key: Some(Secret::new(format!("dev-{:032x}", rand::random::<u128>()))),
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        signing_secret: Some(Secret::new(format!("whsec_{}", BASE64_STANDARD.encode(rand::random::<[u8; 32]>())))),
        answer_bytes_max: ANSWER_BYTES_IN_DEV,
    };
    let mut settings = Settings::resolve(&options.service, defaults)?;
    if !settings.address.ip().is_loopback() {
        return Err(Failure::Configuration(
            "BIND must be a loopback address for `timer dev`; use `timer serve` for others.".into(),
        ));
    }
    let (clock, inbox, answers) = (Arc::new(MovableClock::default()), Arc::new(Inbox::default()), Arc::new(Answers::default()));
    let check_signature = check_signature(settings.delivery.signing.clone());
    let receiver = Receiver { inbox: inbox.clone(), answers: answers.clone(), clock: clock.clone(), check_signature };
    let receiver = receiver.start().map_err(|error| Failure::run(format!("the receiver cannot be started: {error}."), error))?;
    let login_token = format!("{:032x}", rand::random::<u128>());
    settings.development =
        Some(console::Development { receiver: format!("http://{receiver}"), login_token: Some(login_token.clone()) });
    let movable = settings.database.has_given_clock().then(|| clock.clone());
    let tools = move |parts: Parts| {
        let (stop, open) = (parts.stop.clone(), inbox.clone());
        tokio::spawn(async move {
            stop.cancelled().await;
            open.close();
        });
        DevTools { inbox, answers, clock: Arc::new(Advancer::new(movable, parts)) }
    };
    serve::run(&settings, clock, Some(Box::new(tools)), |started| {
        if options.ready_json {
            print_ready(&settings, started, receiver);
        } else {
            announce(&settings, started, receiver, &login_token);
        }
    })
}

fn check_signature(secrets: Option<SigningSecrets>) -> CheckSignature {
    Arc::new(move |call| {
        secrets.as_ref().is_some_and(|secrets| secrets.verifies(call.id, call.timestamp, call.body, call.signature))
    })
}

/// Prints the only line on standard output, for a program that has started this one.
fn print_ready(settings: &Settings, started: &Started, receiver: SocketAddr) {
    let url = format!("http://{}{}", started.address, settings.base_path.as_str());
    // Of two, the first is the new one.
    let secret = settings.signing_secret.as_ref().and_then(|secrets| secrets.expose().split(',').next()).map(str::trim);
    print(format_args!(
        "{}",
        json!({
            "url": url,
            "api_key": settings.api_key.expose(),
            "receiver": format!("http://{receiver}"),
            "signing_secret": secret,
            "console": format!("{url}/console"),
        })
    ));
}

fn announce(settings: &Settings, started: &Started, receiver: SocketAddr, login_token: &str) {
    let Started { address, store, egress, nats } = started;
    let (api_key, base_path) = (settings.api_key.expose(), settings.base_path.as_str());
    let secret = settings.signing_secret.as_ref().map(Secret::expose).unwrap_or_default();
    let console = match settings.console.console {
        Console::Served(_) => format!("http://{address}{base_path}/console/login#once={login_token}     (logs you in, once)"),
        Console::Off => "off".to_owned(),
    };
    let nats = nats.as_deref().unwrap_or("none: HTTP callbacks only (NATS_URL names one)");
    say(format_args!(
        r#"
  Timer Platform {version} is running, for development only.

    API        http://{address}{base_path}     (documentation: http://{address}{base_path}/docs)
    Console    {console}
    API key    {api_key}
    Secret     {secret}     (signs callbacks)
    Store      {store}
    Egress     {egress}     (which addresses callbacks may reach)
    NATS       {nats}
    Receiver   http://{receiver}     (shows every call it gets, below; GET /dev/inbox lists them)

  Try it: this registers a call in five seconds.

    curl -X POST http://{address}{base_path}/timers \
      -H 'X-API-Key: {api_key}' \
      -H 'Content-Type: application/json' \
      -d '{{"delay": "5s", "callback": {{"type": "http", "url": "http://{receiver}/hello", "payload": {{"from": "the past"}}}}}}'

  Stop with ctrl-C. Timers stay in the store.
"#,
        version = env!("CARGO_PKG_VERSION"),
    ));
}
