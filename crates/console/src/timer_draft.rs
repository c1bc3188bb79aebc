//! A timer that is being written, in a form or as the JSON that the API takes. Each of the two is made from the other, so that what was
//! written in one is there in the other, without script too.

use std::collections::BTreeMap;

use commands::{NewTimerRequest, Patch};
use domain::{Invalid, RequestedTime, Timer};
use maud::{Markup, html};
use serde_json::value::RawValue;

use crate::{
    call_kinds::{self, CallField, CallKind, Input},
    config::TimerReader,
    fields::Fields,
    form_preview,
    timer_fields::TimerFields,
    timer_form::TimerForm,
    visitor::Visitor,
};

/// What a viewer has written so far.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) form: TimerForm,
    /// There where it is written as JSON.
    json: Option<String>,
}

/// Members that are strings, and fields of the same name.
const STRINGS: [&str; 10] = [
    "execute_at",
    "delay",
    "namespace",
    "key",
    "on_conflict",
    "group",
    "correlation_id",
    "delivery",
    "expires_after",
    "expires_at",
];
/// Those that make a timer the one it is.
const FIXED: [&str; 3] = ["namespace", "key", "on_conflict"];
/// Those that `null` clears in a change.
const CLEARED: [&str; 2] = ["group", "correlation_id"];
const RETRY: [&str; 5] = ["max_retries", "initial_interval", "backoff_multiplier", "max_interval", "max_duration"];
const NUMBERS: [&str; 2] = ["max_retries", "backoff_multiplier"];

impl Draft {
    /// What was sent.
    pub(crate) fn of(fields: Fields) -> Self {
        let json = fields.has("json").then(|| fields.get("json").unwrap_or_default().to_owned());
        Self { form: TimerForm::of(fields), json }
    }

    /// A form as the tab wants it that is asked for.
    pub(crate) fn of_form(form: TimerForm, tab: Option<&str>, is_new: bool) -> Self {
        let json = (tab == Some("json")).then(|| to_json(&form, is_new));
        Self { form, json }
    }

    /// The same on the other tab. What the JSON does not say is as in `base`.
    pub(crate) fn turned(&self, tab: &str, base: &TimerForm, is_new: bool) -> Result<Self, Invalid> {
        Ok(match (&self.json, tab) {
            (None, "json") => {
                // The form has no choice for a timer that calls nothing.
                let kind = base.get("kind").filter(|kind| CallKind::named(kind).is_none());
                let form =
                    kind.map_or_else(|| self.form.clone(), |kind| TimerForm::of(self.form.fields().with("kind", Some(kind))));
                Self { json: Some(to_json(&form, is_new)), form }
            }
            (Some(text), "form") => Self { form: of_json(text, base)?, json: None },
            _ => self.clone(),
        })
    }

    pub(crate) fn to_request(&self, reader: &TimerReader) -> Result<NewTimerRequest, Invalid> {
        self.json.as_ref().map_or_else(|| self.form.to_request(), |text| (reader.new_timer)(text))
    }

    /// What is to change of a timer. Its time is asked for only where it is another one.
    pub(crate) fn to_patch(&self, reader: &TimerReader, timer: &Timer) -> Result<Patch, Invalid> {
        let Some(text) = &self.json else { return self.form.to_patch(timer) };
        let mut patch = (reader.patch)(text)?;
        patch.asked = patch.asked.filter(|asked| *asked != RequestedTime::At(timer.execute_at));
        Ok(patch)
    }

    /// The form of what was written, to be compared.
    pub(crate) fn as_form(&self, base: &TimerForm) -> TimerForm {
        self.json.as_ref().and_then(|text| of_json(text, base).ok()).unwrap_or_else(|| self.form.clone())
    }

    /// The tabs, and the fields or the text below them.
    pub(crate) fn render(&self, visitor: &Visitor, refused: Option<&Invalid>, is_new: bool) -> Markup {
        html! {
            // What Enter in a field presses is the first button.
            button.unseen tabindex="-1" aria-hidden="true" {}
            div { span.segmented {
                button name="as" value="form" formnovalidate aria-pressed=(self.json.is_none()) { "Form" }
                button name="as" value="json" formnovalidate aria-pressed=(self.json.is_some()) { "JSON" }
            } }
            @match &self.json {
                Some(text) => {
                    label { @if is_new { "The body of POST /timers" } @else { "The body of PUT /timers/{id}: what is left out stays as it is, null clears" }
                        textarea name="json" rows="24" spellcheck="false" aria-invalid=[refused.map(|_| "true")] { "\n" (text) }
                    }
                    (form_preview::fragment(visitor, &self.as_form(&TimerForm::default())))
                }
                None => { (TimerFields { visitor, form: &self.form, refused, is_new }.render()) }
            }
        }
    }
}

/// The body of the request that a form would be.
fn to_json(form: &TimerForm, is_new: bool) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let of_field = |name: &'static str| form.get(name).map(|value| (name, quoted(value)));
    let left_out = |name: &&str| !is_new && FIXED.contains(name);
    let mut members: Vec<(&str, String)> = Vec::new();
    if form.is_instant() {
        // What cannot be read stays as it was written.
        let written = form.get("date").or(form.get("execute_at")).map(str::to_owned);
        let instant = form.instant().map_or(written, |instant| instant.map(|at| at.to_string()));
        members.extend(instant.map(|text| ("execute_at", quoted(&text))));
    } else {
        members.extend(of_field("delay"));
    }
    for name in STRINGS.into_iter().skip(2).filter(|name| !left_out(name)) {
        let is_meant = name != "on_conflict" || form.get("key").is_some();
        match of_field(name).filter(|_| is_meant) {
            Some(member) => members.push(member),
            None if !is_new && CLEARED.contains(&name) => members.push((name, "null".to_owned())),
            None => {}
        }
    }
    if !is_new && form.get("expires_after").is_none() && form.get("expires_at").is_none() {
        members.push(("expires_after", "null".to_owned()));
    }
    if form.get("kind").is_none_or(|kind| CallKind::named(kind).is_some()) {
        members.push(("callback", callback(form)));
    }
    let null = || if is_new { None } else { Some("null".to_owned()) };
    members.extend(form.get("metadata").map(str::to_owned).or_else(null).map(|text| ("metadata", text)));
    let retry: Vec<_> = RETRY
        .into_iter()
        .filter_map(|name| {
            let value = form.get(name)?;
            let is_number = NUMBERS.contains(&name) && serde_json::from_str::<serde_json::Number>(value).is_ok();
            Some((name, if is_number { value.to_owned() } else { quoted(value) }))
        })
        .collect();
    let retry = if retry.is_empty() { null() } else { Some(object(&retry, 1)) };
    members.extend(retry.map(|text| ("retry_policy", text)));
    object(&members, 0)
}

fn callback(form: &TimerForm) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let kind = CallKind::chosen(form.get("kind"));
    let mut members = vec![("type", quoted(kind.name))];
    for field in kind.fields() {
        let json = |value: &str| if is_flag(field) { "true".to_owned() } else { quoted(value) };
        members.extend(form.get(field.name).map(|value| (field.member, json(value))));
    }
    if let Ok(headers) = form.headers()
        && !headers.is_empty()
    {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), quoted(value))).collect();
        members.push(("headers", object(&headers, 2)));
    }
    // The text stays as it was written.
    members.extend(form.get("payload").map(|text| ("payload", text.to_owned())));
    object(&members, 1)
}

/// An object on lines of its own, at this depth. The values are JSON.
fn object(members: &[(&str, String)], depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let lines: Vec<_> =
        members.iter().map(|(name, value)| format!("{indent}  {}: {value}", serde_json::Value::from(*name))).collect();
    format!("{{\n{}\n{indent}}}", lines.join(",\n"))
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

fn members<'a>(name: &str, text: &'a str) -> Result<Members<'a>, Invalid> {
    serde_json::from_str(text).map_err(|_| Invalid::new(name, "must be a JSON object"))
}

/// The form of a text. What the form has no field for stays JSON.
fn of_json(text: &str, base: &TimerForm) -> Result<TimerForm, Invalid> {
    let mut fields = base.fields().with("json", None).with("as", None);
    let mut put = |name: &str, value: Option<&str>| fields = fields.with(name, value);
    let given = members("the body", text)?;
    if given.contains_key("delay") || given.contains_key("execute_at") {
        put("delay", None);
        put("execute_at", None);
        put("date", None);
        put("when", Some(if given.contains_key("execute_at") { "at" } else { "delay" }));
    }
    if given.contains_key("expires_after") || given.contains_key("expires_at") {
        put("expires_after", None);
        put("expires_at", None);
    }
    for (name, raw) in &given {
        match name.as_str() {
            name if STRINGS.contains(&name) => put(name, plain(raw).as_deref()),
            "metadata" => put(name, Some(raw.get()).filter(|text| *text != "null")),
            "retry_policy" => {
                RETRY.iter().for_each(|name| put(name, None));
                let policy = if raw.get() == "null" { Members::new() } else { members(name, raw.get())? };
                for (name, raw) in policy {
                    put(&name, plain(raw).as_deref());
                }
            }
            "callback" => put_callback(&members(name, raw.get())?, &mut put)?,
            name => return Err(Invalid::new(name, "has no field in the form: go on as JSON")),
        }
    }
    Ok(TimerForm::of(fields))
}

fn put_callback(callback: &Members<'_>, put: &mut dyn FnMut(&str, Option<&str>)) -> Result<(), Invalid> {
    for name in ["kind", "payload", "headers"].into_iter().chain(call_kinds::fields().map(|field| field.name)) {
        put(name, None);
    }
    let kind = CallKind::chosen(callback.get("type").and_then(|raw| plain(raw)).as_deref());
    for (name, raw) in callback {
        match name.as_str() {
            "payload" => put("payload", Some(raw.get()).filter(|text| *text != "null")),
            "type" => put("kind", plain(raw).as_deref()),
            "headers" => {
                let lines = members("callback.headers", raw.get())?;
                let lines: Vec<_> =
                    lines.into_iter().map(|(name, raw)| format!("{name}: {}", plain(raw).unwrap_or_default())).collect();
                put("headers", Some(&lines.join("\n")));
            }
            name => match kind.fields().find(|field| field.member == name) {
                Some(field) if is_flag(field) => put(field.name, (raw.get() == "true").then_some("on")),
                Some(field) => put(field.name, plain(raw).as_deref()),
                None => return Err(Invalid::new(format!("callback.{name}"), "has no field in the form: go on as JSON")),
            },
        }
    }
    Ok(())
}

const fn is_flag(field: &CallField) -> bool {
    matches!(field.input, Input::Flag { .. })
}

/// A string without its quotes, or a number as it is written; nothing for `null`.
fn plain(raw: &RawValue) -> Option<String> {
    match raw.get() {
        "null" => None,
        text => Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "when=delay&delay=15m&kind=http&url=https%3A%2F%2Fa%2Fb&timeout=5s&payload=%7B%22n%22%3A+12345678901234567890%7D\
                        &headers=X-A%3A+1%0AX-B%3A+2&namespace=shop&key=k&on_conflict=replace&max_retries=5&initial_interval=10s\
                        &metadata=%7B%22a%22%3A1%7D&delivery=at_most_once&expires_after=1h";

    fn form(text: &str) -> TimerForm {
        TimerForm::of(Fields::parse(text.as_bytes()))
    }

    #[test]
    fn a_form_becomes_json_and_the_same_form_again() {
        for text in [
            FORM,
            "when=at&execute_at=2030-01-31T12:00:00Z&kind=nats&topic=a.b&message_key=k&jetstream=on",
            "when=at&date=2030-01-31T12:00&zone=Europe/Berlin&kind=http&url=x",
            "delay=1h&kind=http&url=x",
        ] {
            let json = to_json(&form(text), true);
            assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
            let back = of_json(&json, &form("")).unwrap();
            assert!(form(text).differences(&back).is_empty(), "{json}");
            assert_eq!(to_json(&back, true), json);
        }
        assert!(to_json(&form(FORM), true).contains(r#""payload": {"n": 12345678901234567890}"#));
    }

    #[test]
    fn a_change_leaves_out_what_is_fixed_and_clears_what_is_empty() {
        let json = to_json(&form("when=delay&delay=1h&namespace=a&key=k&url=https%3A%2F%2Fa"), false);
        assert!(!json.contains("namespace") && !json.contains("\"key\""), "{json}");
        for cleared in ["\"metadata\": null", "\"retry_policy\": null", "\"group\": null", "\"expires_after\": null"] {
            assert!(json.contains(cleared), "{cleared}: {json}");
        }
    }

    #[test]
    fn what_the_form_has_no_field_for_stays_json() {
        for (text, refusal) in [
            ("[]", "the body must be a JSON object"),
            (r#"{"on_success": {"type": "http"}}"#, "on_success has no field in the form"),
            (r#"{"callback": {"type": "http", "verb": "PUT"}}"#, "callback.verb has no field in the form"),
        ] {
            let met = of_json(text, &form("")).unwrap_err().to_string();
            assert!(met.starts_with(refusal), "{met}");
        }
    }
}
