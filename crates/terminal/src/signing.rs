//! `timer sign` and `timer verify`: signatures of Standard Webhooks, for those who write receivers.

use std::io::Read;

use clap::Args;
use client::webhook::{self, Secret};
use http::{HeaderMap, HeaderValue};

use crate::{Context, Failure, output::print};

/// The most that is read of a body.
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, Args)]
pub struct SignOptions {
    /// The secret: whsec_…
    #[arg(long, env = "SIGNING_SECRET", hide_env_values = true)]
    pub secret: String,
    /// The value of webhook-id
    #[arg(long)]
    pub id: String,
    /// The value of webhook-timestamp, in seconds since 1970; now unless given
    #[arg(long, value_name = "SECONDS")]
    pub timestamp: Option<i64>,
}

#[derive(Debug, Clone, Args)]
pub struct VerifyOptions {
    #[command(flatten)]
    pub signed: SignOptions,
    /// The value of webhook-signature
    #[arg(long)]
    pub signature: String,
}

fn secrets(text: &str) -> Result<Vec<Secret>, Failure> {
    let secrets: Result<Vec<_>, _> = text.split(',').map(Secret::parse).collect();
    secrets.map_err(|doubt| Failure::usage(doubt.to_string()))
}

fn body() -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    std::io::stdin().lock().take(BODY_BYTES_MAX).read_to_end(&mut body)?;
    Ok(body)
}

fn seconds(options: &SignOptions, context: &Context) -> i64 {
    options.timestamp.unwrap_or_else(|| context.clock.now().as_micros().div_euclid(1_000_000))
}

/// Prints the headers that the service would send.
pub fn sign(options: &SignOptions, context: &Context) -> Result<(), Failure> {
    let (secrets, seconds, body) = (secrets(&options.secret)?, seconds(options, context), body()?);
    let signatures: Vec<_> = secrets.iter().map(|secret| secret.sign(&options.id, seconds, &body)).collect();
    print(format_args!("webhook-id: {}", options.id))?;
    print(format_args!("webhook-timestamp: {seconds}"))?;
    print(format_args!("webhook-signature: {}", signatures.join(" ")))
}

/// Without `--timestamp` there is nothing to compare the age with.
pub fn verify(options: &VerifyOptions, context: &Context) -> Result<(), Failure> {
    let VerifyOptions { signed, signature } = options;
    let (secrets, seconds, body) = (secrets(&signed.secret)?, seconds(signed, context), body()?);
    let header =
        |text: &str| HeaderValue::from_str(text).map_err(|_| Failure::usage("what is to be verified is not fit for a header"));
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", header(&signed.id)?);
    headers.insert("webhook-timestamp", header(&seconds.to_string())?);
    headers.insert("webhook-signature", header(signature)?);
    let at = chrono::DateTime::from_timestamp(seconds, 0).ok_or_else(|| Failure::usage("--timestamp is not a time"))?;
    match webhook::check(&headers, &body, &secrets, webhook::TOLERANCE, at) {
        Ok(()) => print(format_args!("valid")),
        Err(doubt) => Err(Failure::unexpected(doubt.to_string())),
    }
}
