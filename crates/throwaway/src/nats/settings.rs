//! What a test can configure of its NATS server, and how the server's configuration expresses it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::server::Ports;

/// Explicit, because the server would otherwise derive the limit from the free memory and disk of the machine.
const MEMORY_STORE_BYTES_MAX: u64 = 256 << 20;
const FILE_STORE_BYTES_MAX: u64 = 4 << 30;

/// Describes a server before it is started. `Nats::builder()` begins with JetStream and without authentication.
#[derive(Debug, Clone)]
#[must_use]
pub struct NatsBuilder {
    jetstream: bool,
    sync_always: bool,
    max_payload_bytes: Option<u32>,
    users: Vec<NatsUser>,
    token: Option<String>,
    tls: Option<Tls>,
}

#[derive(Debug, Clone)]
struct Tls {
    certificate: PathBuf,
    key: PathBuf,
}

impl NatsBuilder {
    pub(super) fn new() -> Self {
        Self { jetstream: true, sync_always: false, max_payload_bytes: None, users: Vec::new(), token: None, tls: None }
    }

    pub fn jetstream(mut self, on: bool) -> Self {
        self.jetstream = on;
        self
    }

    /// Whether JetStream syncs every message to the disk before it acknowledges it, instead of periodically.
    pub fn sync_always(mut self, on: bool) -> Self {
        self.sync_always = on;
        self
    }

    /// The largest message, headers included; 1 MiB when not set.
    pub fn max_payload_bytes(mut self, bytes: u32) -> Self {
        self.max_payload_bytes = Some(bytes);
        self
    }

    /// Adds a user; from the first on, every client has to log in. Not together with a token.
    pub fn user(mut self, user: NatsUser) -> Self {
        self.users.push(user);
        self
    }

    /// The token that every client has to present. Not together with users.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Requires TLS of clients; `certificate` and `key` are PEM files.
    pub fn tls(mut self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        let absolute = |path: &Path| std::path::absolute(path).expect("the working directory is gone");
        self.tls = Some(Tls { certificate: absolute(certificate.as_ref()), key: absolute(key.as_ref()) });
        self
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "tls" } else { "nats" }
    }

    /// The configuration of a server, in the JSON form that nats-server also reads, where strings are quoted reliably.
    pub(super) fn configuration(&self, name: &str, ports: &Ports, home: &Path) -> Map<String, Value> {
        let mut configuration = Map::new();
        let mut set = |key: &str, value: Value| configuration.insert(key.to_owned(), value);
        set("server_name", json!(name));
        set("listen", json!(format!("127.0.0.1:{}", ports.client)));
        set("http", json!(format!("127.0.0.1:{}", ports.monitor)));
        set("pid_file", json!(home.join("pid")));
        if self.jetstream {
            let mut jetstream = json!({
                "store_dir": home,
                "max_memory_store": MEMORY_STORE_BYTES_MAX,
                "max_file_store": FILE_STORE_BYTES_MAX,
            });
            if self.sync_always {
                jetstream["sync_interval"] = json!("always");
            }
            set("jetstream", jetstream);
        }
        if let Some(bytes) = self.max_payload_bytes {
            set("max_payload", json!(bytes));
        }
        let mut authorization = Map::new();
        if let Some(token) = &self.token {
            authorization.insert("token".to_owned(), json!(token));
        }
        if !self.users.is_empty() {
            authorization.insert("users".to_owned(), self.users.iter().map(NatsUser::configuration).collect());
        }
        if !authorization.is_empty() {
            set("authorization", Value::Object(authorization));
        }
        if let Some(Tls { certificate, key }) = &self.tls {
            set("tls", json!({ "cert_file": certificate, "key_file": key }));
        }
        configuration
    }
}

/// A user of the server, and its permissions.
#[derive(Debug, Clone)]
pub struct NatsUser {
    name: String,
    password: String,
    allowed: Option<Allowed>,
}

#[derive(Debug, Clone)]
struct Allowed {
    publish: Vec<String>,
    subscribe: Vec<String>,
}

impl NatsUser {
    /// May publish and subscribe to every subject.
    pub fn unlimited(name: &str, password: &str) -> Self {
        Self { name: name.to_owned(), password: password.to_owned(), allowed: None }
    }

    /// May publish and subscribe to these subjects only (wildcards are fine); an empty list denies all.
    pub fn limited(name: &str, password: &str, publish: &[&str], subscribe: &[&str]) -> Self {
        let owned = |subjects: &[&str]| subjects.iter().map(|&subject| subject.to_owned()).collect();
        let allowed = Allowed { publish: owned(publish), subscribe: owned(subscribe) };
        Self { allowed: Some(allowed), ..Self::unlimited(name, password) }
    }

    fn configuration(&self) -> Value {
        let mut user = json!({ "user": self.name, "password": self.password });
        if let Some(Allowed { publish, subscribe }) = &self.allowed {
            user["permissions"] = json!({ "publish": only(publish), "subscribe": only(subscribe) });
        }
        user
    }
}

/// nats-server takes an empty list of allowed subjects for no list at all, and allows everything.
fn only(subjects: &[String]) -> Value {
    if subjects.is_empty() { json!({ "deny": [">"] }) } else { json!({ "allow": subjects }) }
}
