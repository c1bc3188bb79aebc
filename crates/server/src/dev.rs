//! `timer dev`: a service to try out, with everything made up that `timer serve` asks for.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::{
    exit::{Failure, say},
    serve::{self, Started},
    settings::{ANSWER_BYTES_IN_DEV, Console, Defaults, Options, Settings},
    telemetry,
    values::Secret,
};

pub fn main(options: Options) -> Result<(), Failure> {
    telemetry::log(&options.logs);
    let bind = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let api_key = format!("dev-{:032x}", rand::random::<u128>());
    let defaults = Defaults { api_key: Some(Secret::new(api_key)), bind, answer_bytes_max: ANSWER_BYTES_IN_DEV };
    let mut settings = Settings::resolve(&options, defaults)?;
    if !settings.address.ip().is_loopback() {
        return Err(Failure::Configuration(
            "BIND must be a loopback address for `timer dev`; use `timer serve` for others.".into(),
        ));
    }
    let receiver = start_receiver()?;
    let login_token = format!("{:032x}", rand::random::<u128>());
    settings.development =
        Some(console::Development { receiver: format!("http://{receiver}"), login_token: Some(login_token.clone()) });
    serve::run(&settings, |started| announce(&settings, started, receiver, &login_token))
}

fn announce(settings: &Settings, started: &Started, receiver: SocketAddr, login_token: &str) {
    let Started { address, store, egress, nats } = started;
    let (api_key, base_path) = (settings.api_key.expose(), settings.base_path.as_str());
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
    Store      {store}
    Egress     {egress}     (which addresses callbacks may reach)
    NATS       {nats}
    Receiver   http://{receiver}     (shows every call it gets, below)

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

/// Where the receiver listens if it can: timers that stay in the store find it again after a restart.
const RECEIVER_PORT: u16 = 8081;

/// A receiver on a thread of its own that takes every call and shows it.
fn start_receiver() -> Result<SocketAddr, Failure> {
    let cannot_start = |error: std::io::Error| Failure::run(format!("the receiver cannot be started: {error}."), error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot_start)?;
    let bind = |port| runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
    let listener = bind(RECEIVER_PORT).or_else(|_| bind(0)).map_err(cannot_start)?;
    let address = listener.local_addr().map_err(cannot_start)?;
    std::thread::Builder::new()
        .name("receiver".to_owned())
        .spawn(move || runtime.block_on(receive(listener)))
        .map_err(cannot_start)?;
    Ok(address)
}

async fn receive(listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(show)));
    }
}

async fn show(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    const SHOWN_BYTES_MAX: usize = 500;
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]).into_owned();
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    tracing::info!(due = header("x-timer-scheduled-at"), body = shown, "the receiver got {} {}", head.method, head.uri.path());
    Ok(Response::new(Empty::new()))
}
