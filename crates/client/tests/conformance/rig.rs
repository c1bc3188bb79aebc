//! A service, the faulty server in front of it, and clients that call through that.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use client::{Client, dev::TimerDev};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{Fault, mismatch};

const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Rig {
    pub dev: TimerDev,
    /// Without a scheme.
    faulty: String,
    child: Child,
    /// The faulty server ends when this is closed.
    stdin: Option<ChildStdin>,
}

/// How a client differs from the usual one.
#[derive(Debug, Default)]
pub struct Special {
    pub api_key: Option<String>,
    pub timeout: Option<Duration>,
    pub retries: Option<u32>,
    pub traceparent: Option<String>,
}

impl Rig {
    pub async fn start(suite: &Path) -> Result<Self, Fault> {
        let dev = TimerDev::start().await?;
        let mut command = Command::new("python3");
        command.arg(suite.join("faulty.py")).arg(dev.url()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let ready: Value = serde_json::from_str(&line)?;
        let faulty = ready["url"].as_str().unwrap_or_default().trim_start_matches("http://").to_owned();
        Ok(Self { dev, faulty, stdin: child.stdin.take(), child })
    }

    pub fn client(&self, special: Special) -> Result<Client, Fault> {
        let Special { api_key, timeout, retries, traceparent } = special;
        let api_key = api_key.unwrap_or_else(|| self.dev.api_key().to_owned());
        let mut builder = Client::builder(format!("http://{}", self.faulty), api_key).timeout(timeout.unwrap_or(TIMEOUT));
        if let Some(retries) = retries {
            builder = builder.retries(retries);
        }
        if let Some(value) = traceparent.and_then(|text| HeaderValue::from_str(&text).ok()) {
            builder =
                builder.trace(move || HeaderMap::from_iter([(http::HeaderName::from_static("traceparent"), value.clone())]));
        }
        Ok(builder.build()?)
    }

    pub async fn faults(&self, faults: &Value) -> Result<(), Fault> {
        self.control("PUT", "faults", &faults.to_string()).await.map(drop)
    }

    pub async fn requests(&self) -> Result<Vec<Value>, Fault> {
        let seen = self.control("GET", "requests", "").await?;
        Ok(seen["requests"].as_array().cloned().unwrap_or_default())
    }

    pub async fn forget(&self) -> Result<(), Fault> {
        self.faults(&json!([])).await?;
        self.control("DELETE", "requests", "").await.map(drop)
    }

    /// Tells the faulty server, which closes the connection after its answer.
    async fn control(&self, method: &str, path: &str, body: &str) -> Result<Value, Fault> {
        let mut stream = TcpStream::connect(&self.faulty).await?;
        let length = body.len();
        let request = format!("{method} /-/{path} HTTP/1.1\r\nhost: faulty\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(serde_json::from_str(body)?),
            _ => mismatch(format!("the faulty server said {answer:?}")),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.child.wait());
    }
}
