//! Events of the client library: what the server refused, and whether there is a connection.

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

/// How many events the library buffers; it drops further ones silently.
pub(crate) const EVENTS_HELD_MAX: u64 = 128;
/// How many statements of the server are remembered: more than can come during one round.
const SAID_MAX: usize = 512;
/// How many logged lines are remembered.
const LOGGED_MAX: usize = 16;

pub(crate) struct Events {
    name: &'static str,
    place: String,
    /// The names of the settings that hold the credentials.
    settings: String,
    inbox: Arc<Inbox>,
    heard: Mutex<Heard>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Heard {
    events: u64,
    connects: u64,
    /// Whether no server could be reached since the last connection.
    is_unreachable: bool,
    /// Each statement of the server with the number of its event.
    said: VecDeque<(u64, Said)>,
    /// The lines that were logged since the last connection. None of them is logged again, also when two reasons alternate.
    logged: VecDeque<String>,
}

/// A statement of the server that it does not do what it was asked.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// Publishing to this subject is not permitted.
    Denied(String),
    /// Subscribing to this subject is not permitted.
    NoListening(String),
    /// Any other error.
    Complaint(String),
}

/// The subjects to which publishing was denied, and how often.
pub(crate) type Denials = HashMap<String, usize>;

/// The statements since a given event.
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

    /// How many events have been processed.
    pub fn count(&self) -> u64 {
        self.heard().events
    }

    pub fn is_unreachable(&self) -> bool {
        self.heard().is_unreachable
    }

    /// The statements since the event with this number.
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

    /// Notifies of every event.
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
            // This error ends the connection.
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

    /// Logs a denial for a subject of the server itself, such as an acknowledgement, because no publish reports it.
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

/// The reason why there is no connection, in our words. The library tells only its kind.
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

/// Parses the text of an `-ERR` line.
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

/// The text between the first quotes, which the server escapes as the language Go does. Subjects are printable, so only quotes
/// and backslashes are escaped; any other escape is not of a subject of ours.
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
