//! The fields of the form of a timer, with what is wrong beside the one that it is about.

use domain::Invalid;
use maud::{Markup, html};

use crate::{
    call_kinds::{self, CallField, CallKind, Input, KINDS},
    form_preview,
    problem::sentence,
    timer_form::TimerForm,
    visitor::Visitor,
    zone::Zone,
};

/// A form with its viewer, and what was refused of it.
pub(crate) struct TimerFields<'a> {
    pub(crate) visitor: &'a Visitor,
    pub(crate) form: &'a TimerForm,
    pub(crate) refused: Option<&'a Invalid>,
    pub(crate) is_new: bool,
}

impl TimerFields<'_> {
    pub(crate) fn render(&self) -> Markup {
        html! {
            fieldset.stack { legend { "When" } (self.when()) }
            fieldset.stack { legend { "Call" } (self.call()) }
            fieldset.stack { legend { "Identity" } (self.identity()) }
            fieldset.stack { legend { "If it fails" } (self.failure()) }
        }
    }

    fn when(&self) -> Markup {
        let when = if self.form.is_instant() { "at" } else { "delay" };
        html! {
            div {
                label.inline { input type="radio" name="when" value="delay" checked[when == "delay"] data-shows; "after a delay" }
                label.inline { input type="radio" name="when" value="at" checked[when == "at"] data-shows; "at a time" }
            }
            div.pair data-kind="when:delay" { (self.line("delay", "Delay", "90s, 1h30m, 2d or PT15M", "15m")) }
            div.pair data-kind="when:at" { (self.date()) }
            (form_preview::fires(self.visitor, self.form))
        }
    }

    /// A date and its zone. The exact instant of a timer travels along, because the field of a date has no microseconds.
    fn date(&self) -> Markup {
        let chosen = self.visitor.preferences.known_zone.is_some().then_some(self.visitor.preferences.zone.as_str());
        let name = self.form.get("zone").or(chosen).unwrap_or("UTC");
        let zone = Zone::named(name).or_else(|| Zone::named("UTC"));
        let date = zone.map(|zone| self.form.date_shown(&zone)).unwrap_or_default();
        html! {
            @if let Some(exact) = self.form.get("execute_at") { input type="hidden" name="execute_at" value=(exact); }
            label { "Date and time"
                input type="datetime-local" step="any" name="date" value=(date) aria-invalid=[self.invalid("execute_at")];
                (self.error("execute_at"))
            }
            label { "Time zone"
                input #form-zone type="text" name="zone" value=(name) list="zones" placeholder="Europe/Berlin" aria-invalid=[self.invalid("zone")] autocomplete="off" spellcheck="false";
                (self.error("zone"))
            }
            (zone_list())
        }
    }

    fn call(&self) -> Markup {
        let chosen = CallKind::chosen(self.form.get("kind")).name;
        html! {
            div {
                @for kind in &KINDS {
                    label.inline { input type="radio" name="kind" value=(kind.name) checked[kind.name == chosen] data-shows; (kind.label) }
                }
            }
            @for kind in &KINDS {
                div.stack data-kind={ "kind:" (kind.name) } {
                    @for row in kind.rows {
                        @match row {
                            [field] => { (self.of_call(field)) }
                            fields => { div.pair { @for field in *fields { (self.of_call(field)) } } }
                        }
                    }
                }
            }
            (self.area("payload", "Payload", "JSON, sent exactly as written", 6))
            (self.area("headers", "Headers", "One per line: Name: value", 2))
        }
    }

    fn identity(&self) -> Markup {
        html! {
            @if self.is_new {
                div.pair { (self.line("namespace", "Namespace", "", "default")) (self.line("key", "Key", "Your own id: creating it again gives the same timer", "order-456")) }
                (self.choice("on_conflict", "If the key exists with other content", &[("reject", "refuse"), ("replace", "replace it"), ("keep", "keep the one there is"), ("postpone", "postpone it by the delay")]))
            }
            div.pair { (self.line("group", "Group", "Counted and canceled together", "")) (self.line("correlation_id", "Correlation id", "Carried to the call and the logs", "")) }
            (self.area("metadata", "Metadata", "JSON, searched with meta.PATH:value", 3))
        }
    }

    fn failure(&self) -> Markup {
        html! {
            div.pair {
                (self.line("max_retries", "Retries", "0 to 1000; empty for none", ""))
                (self.line("initial_interval", "First pause", "30s unless given", ""))
                (self.line("backoff_multiplier", "Each pause longer by", "2 unless given", ""))
                (self.line("max_interval", "Longest pause", "10m unless given", ""))
                (self.line("max_duration", "No attempt after", "Counted from the due time", ""))
            }
            (form_preview::retries(self.form))
            div.pair {
                (self.choice("delivery", "After a crash", &[("at_least_once", "call again: at least once"), ("at_most_once", "let it fail: at most once")]))
                (self.line("expires_after", "Expires after", "Counted from the due time", ""))
                (self.line("expires_at", "or expires at", "", ""))
            }
        }
    }

    fn of_call(&self, field: &CallField) -> Markup {
        match field.input {
            Input::Line { label, hint, placeholder, .. } => self.line(field.name, label, hint, placeholder),
            Input::Choice { label, values } => self.choice(field.name, label, values),
            Input::Flag { label } => html! {
                label.inline { input type="checkbox" name=(field.name) checked[self.form.get(field.name).is_some()]; (label) }
            },
        }
    }

    fn line(&self, name: &str, label: &str, hint: &str, placeholder: &str) -> Markup {
        html! {
            label { (label) @if !hint.is_empty() { span.hint { (hint) } }
                input type="text" name=(name) value=(self.form.value(name)) placeholder=(placeholder) aria-invalid=[self.invalid(name)] autocomplete="off" spellcheck="false";
                (self.error(name))
            }
        }
    }

    fn area(&self, name: &str, label: &str, hint: &str, rows: u32) -> Markup {
        html! {
            label { (label) span.hint { (hint) }
                textarea name=(name) rows=(rows) aria-invalid=[self.invalid(name)] spellcheck="false" { "\n" (self.form.value(name)) }
                (self.error(name))
            }
        }
    }

    fn choice(&self, name: &str, label: &str, values: &[(&str, &str)]) -> Markup {
        html! {
            label { (label)
                select name=(name) { @for (value, text) in values { option value=(value) selected[self.form.get(name) == Some(value)] { (text) } } }
                (self.error(name))
            }
        }
    }

    fn refusal_of(&self, name: &str) -> Option<&Invalid> {
        self.refused.filter(|invalid| names_field(invalid, name))
    }

    fn invalid(&self, name: &str) -> Option<&'static str> {
        self.refusal_of(name).map(|_| "true")
    }

    fn error(&self, name: &str) -> Markup {
        html! { @if let Some(invalid) = self.refusal_of(name) {
            span.field-error id={ "error-" (name) } role="alert" { (sentence(&invalid.to_string())) }
        } }
    }
}

/// The names that a field of a zone suggests.
pub(crate) fn zone_list() -> Markup {
    html! { datalist #zones { option value="UTC"; @for name in Zone::names().filter(|name| name.contains('/')) { option value=(name); } } }
}

/// Whether a refusal is about this field of the form.
fn names_field(invalid: &Invalid, name: &str) -> bool {
    let field = invalid.field.as_str();
    let last = field.rsplit('.').next().unwrap_or(field);
    let is_of_call = |member| call_kinds::fields().any(|field| field.name == name && field.member == member);
    field == name || last == name || field.strip_prefix("callback.").is_some_and(is_of_call)
}
