//! One request to a running service, for the commands that ask one.

use std::time::Duration;

use client::{Client, Error, Request};
use http::Method;
use serde_json::Value;

use crate::{cli::ServiceOptions, exit::Failure};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Asks the service, and gives the `data` of its answer.
pub fn ask(options: &ServiceOptions, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
    let api_key = options
        .api_key
        .as_ref()
        .ok_or_else(|| configuration("API_KEY is required: the one that the service was started with."))?;
    http::HeaderValue::from_str(api_key.expose()).map_err(|_| configuration("API_KEY must be fit for a header."))?;
    let base = base(options)?;
    let client = Client::builder(&base, api_key.expose()).timeout(TIMEOUT).retries(0).build();
    let client = client
        .map_err(|_| configuration("TIMER_URL must be a URL such as http://127.0.0.1:8080 or https://timers.example.com."))?;
    let mut request = Request::new(method, path);
    if let Some(body) = body {
        request = request.json(body.to_string());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::run(format!("no request can be made: {error}."), error))?;
    let answer = runtime.block_on(client.call(&request)).and_then(|answer| answer.data.parse());
    answer.map_err(|error| Failure::Run(sentence(&base, &error).into()))
}

fn base(options: &ServiceOptions) -> Result<String, Failure> {
    match &options.url {
        Some(url) => Ok(url.clone()),
        None => Ok(format!("http://127.0.0.1:{}{}", options.local.port.get()?, options.local.base_path()?.as_str())),
    }
}

fn sentence(base: &str, error: &Error) -> String {
    match error {
        Error::Unreachable { cause, .. } => format!("{base} cannot be asked: {cause}."),
        refused if refused.refusal().is_some_and(|refusal| refusal.code.is_some()) => {
            format!("the service refused it: {refused}.")
        }
        _ => format!("what answers at {base} is no timer service."),
    }
}

/// The text of a string, and nothing for anything else.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn configuration(sentence: &str) -> Failure {
    Failure::Configuration(sentence.into())
}
