//! One request to a running service, for the commands that ask one.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::Value;

use crate::{cli::ServiceOptions, exit::Failure};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Asks the service, and gives the `data` of its answer.
pub fn ask(options: &ServiceOptions, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
    let api_key = options
        .api_key
        .as_ref()
        .ok_or_else(|| configuration("API_KEY is required: the one that the service was started with."))?;
    let base = base(options)?;
    let uri: Uri = format!("{}{path}", base.trim_end_matches('/')).parse().map_err(|_| not_a_url())?;
    // A name and a password in it would mean nothing to the service, and be shown with the URL.
    let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    if !matches!(uri.scheme_str(), Some("http" | "https")) || !is_plain {
        return Err(not_a_url());
    }
    let mut request = Request::builder().method(method).uri(uri).header("x-api-key", api_key.expose());
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let text = body.map(Value::to_string).unwrap_or_default();
    let request = request.body(Full::new(Bytes::from(text))).map_err(|_| configuration("API_KEY must be fit for a header."))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::run(format!("no request can be made: {error}."), error))?;
    let answer = runtime.block_on(async { tokio::time::timeout(TIMEOUT, send(request)).await });
    let answer = answer.unwrap_or_else(|_| Err(format!("it did not answer within {} s", TIMEOUT.as_secs())));
    let text = answer.map_err(|cause| Failure::Run(format!("{base} cannot be asked: {cause}.").into()))?;
    data(&base, &text)
}

fn base(options: &ServiceOptions) -> Result<String, Failure> {
    match &options.url {
        Some(url) => Ok(url.clone()),
        None => Ok(format!("http://127.0.0.1:{}{}", options.local.port.get()?, options.local.base_path()?.as_str())),
    }
}

async fn send(request: Request<Full<Bytes>>) -> Result<Bytes, String> {
    let connector = HttpsConnectorBuilder::new().with_native_roots().map_err(|error| error.to_string())?;
    let connector = connector.https_or_http().enable_http1().build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let answer = client.request(request).await.map_err(|error| root_cause(&error))?;
    let body = answer.into_body().collect().await.map_err(|error| root_cause(&error))?;
    Ok(body.to_bytes())
}

/// What stands in the envelope of an answer, or why there is none.
fn data(base: &str, text: &[u8]) -> Result<Value, Failure> {
    let envelope: Option<Value> = serde_json::from_slice(text).ok();
    let Some((code, message)) = envelope.as_ref().and_then(|it| Some((it["code"].as_i64()?, it["message"].as_str()?))) else {
        return Err(Failure::Run(format!("what answers at {base} is no timer service.").into()));
    };
    if code != 0 {
        return Err(Failure::Run(format!("the service refused it: {message}.").into()));
    }
    Ok(envelope.map(|mut envelope| envelope["data"].take()).unwrap_or_default())
}

/// The text of a string, and nothing for anything else.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The innermost error says what happened; those around it only where.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn configuration(sentence: &str) -> Failure {
    Failure::Configuration(sentence.into())
}

fn not_a_url() -> Failure {
    configuration("TIMER_URL must be a URL such as http://127.0.0.1:8080 or https://timers.example.com.")
}
