//! What the client library tells about the connection: what the server refused, and whether there is one.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_nats::{ClientError, ConnectErrorKind, Event, ServerError};
use tokio::sync::watch;

use crate::{
    inbox::{Inbox, Refusal},
    metrics,
};

/// How many events the library holds for us; it drops what comes on top without a word.
pub(crate) const EVENTS_HELD_MAX: u64 = 128;
/// How many things that the server said are remembered: more than can be said during one round.
const SAID_MAX: usize = 512;
/// How many things are remembered to have been logged.
const LOGGED_MAX: usize = 16;

pub(crate) struct Events {
    name: &'static str,
    place: String,
    /// Which settings hold the credentials.
    settings: String,
    inbox: Arc<Inbox>,
    heard: Mutex<Heard>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Heard {
    events: u64,
    connects: u64,
    /// No server could be reached since there was a connection.
    is_unreachable: bool,
    /// With the number of its event.
    said: VecDeque<(u64, Said)>,
    /// What was written to the log since there was a connection. The same is not written again, for two reasons may alternate.
    logged: VecDeque<String>,
}

/// What a server says when it does not do what it was asked to.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// Publishing to this subject is not allowed.
    Denied(String),
    /// Subscribing to this subject is not allowed.
    NoListening(String),
    /// Anything else.
    Complaint(String),
}

/// The subjects that publishing to was denied, and how often.
pub(crate) type Denials = HashMap<String, usize>;

/// What came in since some event.
#[derive(Debug, Default)]
pub(crate) struct Since {
    pub events: u64,
    pub denied: Denials,
    pub complaint: Option<String>,
}

impl Events {
    pub fn new(name: &'static str, place: String, settings: String, inbox: Arc<Inbox>) -> Self {
        Self { name, place, settings, inbox, heard: Mutex::default(), changed: watch::Sender::new(()) }
    }

    /// Takes one event in. It never waits: what comes after an event relies on it having been taken in.
    pub fn take(&self, event: Event) {
        self.heard().events += 1;
        match event {
            Event::Connected => self.connected(),
            Event::Disconnected => {
                self.heard().is_unreachable = false;
                self.inbox.disconnected();
                metrics::connected(self.name, false);
                tracing::warn!(
                    nats.connection = self.name,
                    nats.server = self.place,
                    "connection to NATS lost: connecting again"
                );
            }
            Event::ServerError(error) => self.server_said(&error),
            // All servers have been tried.
            Event::ClientError(ClientError::Other(reason)) => {
                self.heard().is_unreachable = true;
                let reason = cannot_connect(&reason, &self.settings);
                self.log_once(reason, |reason| {
                    tracing::warn!(nats.connection = self.name, nats.server = self.place, "cannot connect to NATS: {reason}");
                });
            }
            Event::LameDuckMode => {
                tracing::info!(nats.connection = self.name, nats.server = self.place, "the NATS server is about to stop");
            }
            Event::Draining | Event::Closed | Event::SlowConsumer(_) | Event::ClientError(_) => {}
        }
        self.changed.send_replace(());
    }

    /// How many events have been taken in.
    pub fn count(&self) -> u64 {
        self.heard().events
    }

    pub fn is_unreachable(&self) -> bool {
        self.heard().is_unreachable
    }

    /// What was said since the event with this number.
    pub fn since(&self, event: u64) -> Since {
        let heard = self.heard();
        let mut since = Since { events: heard.events - event, ..Since::default() };
        for (_, said) in heard.said.iter().filter(|(number, _)| *number > event) {
            match said {
                Said::Denied(subject) => *since.denied.entry(subject.clone()).or_default() += 1,
                Said::Complaint(text) => since.complaint = Some(text.clone()),
                Said::NoListening(_) => {}
            }
        }
        since
    }

    /// Whether publishing to `subject` was denied since the event with this number.
    pub fn is_denied_since(&self, event: u64, subject: &str) -> bool {
        let is_it = |said: &Said| matches!(said, Said::Denied(denied) if denied == subject);
        self.heard().said.iter().any(|(number, said)| *number > event && is_it(said))
    }

    /// Changes after every event.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Wakes all tasks that wait for a change.
    pub fn nudge(&self) {
        self.changed.send_replace(());
    }

    fn connected(&self) {
        self.inbox.connected();
        metrics::connected(self.name, true);
        let is_first = {
            let mut heard = self.heard();
            heard.is_unreachable = false;
            heard.logged.clear();
            heard.connects += 1;
            heard.connects == 1
        };
        if !is_first {
            metrics::reconnected(self.name);
        }
        tracing::info!(nats.connection = self.name, nats.server = self.place, "connected to NATS");
    }

    fn server_said(&self, error: &ServerError) {
        let said = match error {
            ServerError::Other(text) => understand(text),
            // It ends the connection.
            ServerError::AuthorizationViolation => Said::Complaint(cannot_connect(AUTHORIZATION, &self.settings)),
            ServerError::SlowConsumer(_) => return,
        };
        match &said {
            Said::Denied(subject) => {
                self.log_refusal(self.inbox.publish_denied(subject));
                self.log_service_denied(subject);
            }
            Said::NoListening(subject) => self.log_refusal(self.inbox.subscription_denied(subject)),
            Said::Complaint(text) => self.log_once(text.clone(), |text| {
                tracing::warn!(nats.connection = self.name, nats.server = self.place, "the NATS server says: {text}");
            }),
        }
        let mut heard = self.heard();
        let number = heard.events;
        if heard.said.len() == SAID_MAX {
            heard.said.pop_front();
        }
        heard.said.push_back((number, said));
    }

    fn log_refusal(&self, refusal: Option<Refusal>) {
        if let Some(refusal) = refusal {
            self.log_once(refusal.missing().to_owned(), |missing| {
                tracing::warn!(
                    nats.connection = self.name,
                    nats.server = self.place,
                    "the NATS user may not {missing} _INBOX.>: arrivals cannot be confirmed"
                );
            });
        }
    }

    /// Subjects of the server itself, such as acknowledgements: no publish reports that those are denied.
    fn log_service_denied(&self, subject: &str) {
        if subject.starts_with('$') {
            let tokens: Vec<_> = subject.split('.').take(2).collect();
            self.log_once(format!("{}.>", tokens.join(".")), |subjects| {
                tracing::warn!(
                    nats.connection = self.name,
                    nats.server = self.place,
                    "the NATS user may not publish to {subjects}"
                );
            });
        }
    }

    fn log_once(&self, trouble: String, log: impl FnOnce(&str)) {
        let mut heard = self.heard();
        if !heard.logged.contains(&trouble) {
            log(&trouble);
            heard.logged.push_back(trouble);
            if heard.logged.len() > LOGGED_MAX {
                heard.logged.pop_front();
            }
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const AUTHORIZATION: &str = "authorization violation";

/// The reason why there is no connection, in our words. The library gives no more than its kind.
fn cannot_connect(reason: &str, settings: &str) -> String {
    let kinds = [
        (ConnectErrorKind::AuthorizationViolation, format!("the server refuses the login: check {settings}")),
        (ConnectErrorKind::Dns, "its host name cannot be resolved".to_owned()),
        (ConnectErrorKind::TimedOut, "there is no answer".to_owned()),
        (ConnectErrorKind::Tls, "TLS cannot be set up".to_owned()),
        (
            ConnectErrorKind::Io,
            "it cannot be reached, or closes the connection (another port, TLS, or its certificate may be the reason)".to_owned(),
        ),
    ];
    kinds.into_iter().find(|(kind, _)| kind.to_string() == reason).map_or_else(|| reason.to_owned(), |(_, words)| words)
}

/// Reads the text of an `-ERR` line.
fn understand(text: &str) -> Said {
    let subject = |start: &str| text.strip_prefix(start).and_then(unquote);
    if let Some(subject) = subject("Permissions Violation for Publish to ") {
        return Said::Denied(subject);
    }
    match subject("Permissions Violation for Subscription to ") {
        Some(subject) => Said::NoListening(subject),
        None => Said::Complaint(text.to_owned()),
    }
}

/// The text between the first quotes, which the server writes as the language Go does. Subjects are printable, so that only
/// quotes and backslashes are escaped; anything else is none of ours.
fn unquote(text: &str) -> Option<String> {
    let mut characters = text.strip_prefix('"')?.chars();
    let mut plain = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(plain),
            '\\' => match characters.next()? {
                escaped @ ('"' | '\\') => plain.push(escaped),
                _ => return None,
            },
            character => plain.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Events {
        Events::new("test", "h:4222".to_owned(), "NATS_URL".to_owned(), Arc::default())
    }

    fn say(events: &Events, text: &str) {
        events.take(Event::ServerError(ServerError::Other(text.to_owned())));
    }

    #[test]
    fn the_servers_words_are_understood() {
        let complaint = |text: &str| Said::Complaint(text.to_owned());
        for (text, said) in [
            (r#"Permissions Violation for Publish to "a.b""#, Said::Denied("a.b".to_owned())),
            (r#"Permissions Violation for Publish to "a\"\\b'""#, Said::Denied(r#"a"\b'"#.to_owned())),
            (r#"Permissions Violation for Publish to "a\x07b""#, complaint(r#"Permissions Violation for Publish to "a\x07b""#)),
            (r#"Permissions Violation for Publish to "a"#, complaint(r#"Permissions Violation for Publish to "a"#)),
            (r#"Permissions Violation for Subscription to "a""#, Said::NoListening("a".to_owned())),
            (r#"Permissions Violation for Subscription to "a" using queue "q""#, Said::NoListening("a".to_owned())),
            ("Maximum Payload Violation", complaint("Maximum Payload Violation")),
            ("", complaint("")),
        ] {
            assert_eq!(understand(text), said);
        }
    }

    #[test]
    fn what_was_said_before_is_not_held_against_what_comes_after() {
        let events = events();
        say(&events, r#"Permissions Violation for Publish to "a""#);
        let mark = events.count();
        assert!(events.is_denied_since(0, "a") && !events.is_denied_since(mark, "a"));
        say(&events, r#"Permissions Violation for Publish to "b""#);
        say(&events, "Maximum Payload Violation");
        let since = events.since(mark);
        assert_eq!((since.events, since.denied), (2, Denials::from([("b".to_owned(), 1)])));
        assert_eq!(since.complaint.as_deref(), Some("Maximum Payload Violation"));
        assert!(events.is_denied_since(mark, "b") && !events.is_denied_since(mark, "a"));
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let events = events();
        for number in 0..10_000 {
            say(&events, &format!(r#"Permissions Violation for Publish to "{number}""#));
        }
        assert_eq!(events.heard().said.len(), SAID_MAX);
        assert_eq!(events.since(10_000 - EVENTS_HELD_MAX).denied.len() as u64, EVENTS_HELD_MAX);
    }

    #[test]
    fn a_refused_login_names_the_settings() {
        let reason = ConnectErrorKind::AuthorizationViolation.to_string();
        assert_eq!(reason, AUTHORIZATION);
        assert_eq!(
            cannot_connect(&reason, "NATS_USER and NATS_PASSWORD"),
            "the server refuses the login: check NATS_USER and NATS_PASSWORD"
        );
        assert_eq!(cannot_connect("something new", ""), "something new");
    }
}
