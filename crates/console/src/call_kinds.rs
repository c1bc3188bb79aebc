//! The kinds of callbacks as the console shows them: the fields of the form that only one kind has, and what the page of a timer says of a
//! call. A further kind is an entry of [`KINDS`] and an arm of [`facts`].

use domain::{Callback, Endpoint, Headers};
use maud::{Markup, html};
use serde_json::Value;

use crate::text;

/// A kind that a viewer can choose.
pub(crate) struct CallKind {
    /// The value of `type` in a callback.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    /// Its fields; those of a row stand beside each other.
    pub(crate) rows: &'static [&'static [CallField]],
}

/// A field of the form that only one kind has.
pub(crate) struct CallField {
    pub(crate) name: &'static str,
    /// The member of a callback that it becomes.
    pub(crate) member: &'static str,
    pub(crate) input: Input,
}

pub(crate) enum Input {
    Line {
        label: &'static str,
        hint: &'static str,
        placeholder: &'static str,
        /// Whether an empty one is refused by the rule for its content.
        is_required: bool,
    },
    Choice {
        label: &'static str,
        values: &'static [(&'static str, &'static str)],
    },
    /// A box to check; the member is `true` where it is checked.
    Flag {
        label: &'static str,
    },
}

/// The first is the one that is meant where none is chosen.
pub(crate) static KINDS: [CallKind; 2] = [
    CallKind {
        name: "http",
        label: "HTTP POST",
        rows: &[
            &[CallField {
                name: "url",
                member: "url",
                input: Input::Line { label: "URL", hint: "", placeholder: "https://api.example.com/webhook", is_required: true },
            }],
            &[
                CallField {
                    name: "timeout",
                    member: "timeout",
                    input: Input::Line { label: "Answer within", hint: "100ms to 5m", placeholder: "30s", is_required: false },
                },
                CallField {
                    name: "protocol",
                    member: "protocol",
                    input: Input::Choice {
                        label: "Answer is read as",
                        values: &[("webhook", "webhook: any 2xx is success"), ("timer", "timer: the body says what is next")],
                    },
                },
            ],
        ],
    },
    CallKind {
        name: "nats",
        label: "NATS message",
        rows: &[
            &[
                CallField {
                    name: "topic",
                    member: "topic",
                    input: Input::Line { label: "Subject", hint: "", placeholder: "events.timer.triggered", is_required: true },
                },
                // The form has a field `key` already, which is that of the timer.
                CallField {
                    name: "message_key",
                    member: "key",
                    input: Input::Line {
                        label: "Message key",
                        hint: "Travels as X-Timer-Key",
                        placeholder: "",
                        is_required: false,
                    },
                },
            ],
            &[CallField {
                name: "jetstream",
                member: "jetstream",
                input: Input::Flag { label: "delivered only when a stream has stored it" },
            }],
        ],
    },
];

impl CallKind {
    /// The kind of this name, if a viewer can choose it.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The kind that a form means.
    pub(crate) fn chosen(name: Option<&str>) -> &'static Self {
        name.and_then(Self::named).unwrap_or(&KINDS[0])
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static CallField> {
        self.rows.iter().copied().flatten()
    }
}

/// The fields of all kinds.
pub(crate) fn fields() -> impl Iterator<Item = &'static CallField> {
    KINDS.iter().flat_map(CallKind::fields)
}

/// The fields of the form that a callback fills, besides those that every kind has.
pub(crate) fn filled_by(callback: &Callback) -> Vec<(&'static str, String)> {
    let endpoint = Callback { endpoint: callback.endpoint.clone(), headers: Headers::EMPTY, payload: None };
    let members: serde_json::Map<String, Value> = serde_json::from_str(&endpoint.to_json()).unwrap_or_default();
    let filled = |field: &CallField| match members.get(field.member)? {
        Value::String(text) => Some((field.name, text.clone())),
        Value::Bool(is_checked) => is_checked.then(|| (field.name, "on".to_owned())),
        other => Some((field.name, other.to_string())),
    };
    CallKind::named(callback.kind()).map(|kind| kind.fields().filter_map(filled).collect()).unwrap_or_default()
}

/// What the page of a timer says of its call.
pub(crate) fn facts(callback: &Callback) -> Markup {
    html! {
        @match &callback.endpoint {
            Endpoint::Http(http) => {
                dt { "Call" } dd.mono { "POST " (http.url.as_str()) }
                dt { "Answer within" } dd { (text::span(http.timeout)) ", read as " (http.protocol.as_str()) }
            }
            Endpoint::Nats(nats) => {
                dt { "Message" } dd.mono { (nats.topic.as_str()) }
                dt { "Counts as delivered" } dd { @if nats.jetstream { "when a stream has stored it" } @else { "when the NATS server has taken it" } }
                @if let Some(key) = &nats.key { dt { "Message key" } dd.mono { (key) } }
            }
            Endpoint::Event => { dt { "Event" } dd { "published by the broker when it is due" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::KindSet;

    use super::*;

    #[test]
    fn a_viewer_can_choose_what_a_client_may_ask_for() {
        assert_eq!(KINDS.each_ref().map(|kind| kind.name).join(" or "), KindSet::REQUESTABLE.to_string());
        assert_eq!(CallKind::chosen(None).name, "http");
        assert_eq!(CallKind::chosen(Some("event")).name, "http");
    }

    #[test]
    fn a_callback_fills_the_fields_of_its_kind() {
        for (json, filled) in [
            (
                r#"{"type":"http","url":"https://a/b","payload":{"timeout":1}}"#,
                vec![("url", "https://a/b"), ("timeout", "30s"), ("protocol", "webhook")],
            ),
            (r#"{"type":"nats","topic":"a.b"}"#, vec![("topic", "a.b")]),
            (
                r#"{"type":"nats","topic":"a.b","key":"k","jetstream":true}"#,
                vec![("topic", "a.b"), ("message_key", "k"), ("jetstream", "on")],
            ),
        ] {
            let found = filled_by(&Callback::from_json(json).unwrap());
            assert_eq!(found.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>(), filled);
        }
        assert!(filled_by(&Callback::EVENT).is_empty());
    }
}
