//! A timer as a form: what a viewer writes, and what it means.

use commands::{EarliestAllowed, Field, HttpPatch, NewTimerRequest, Patch, Target};
use domain::{
    Callback, CorrelationId, Delivery, Expiry, Group, Headers, Invalid, JsonText, Key, Namespace, OnConflict, Options,
    RequestedTime, RetryPolicy, Span, Timer, Timestamp, limits,
};
use serde_json::json;

use crate::{
    call_kinds::{self, CallKind, Input},
    config::Payloads,
    fields::Fields,
    zone::Zone,
};

/// The fields of the form, in the words of a viewer. What it does not show of a timer stays as it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimerForm(Fields);

/// The fields that a change can conflict in, besides those that only one kind of callback has.
const COMPARED: [&str; 16] = [
    "execute_at",
    "delay",
    "kind",
    "payload",
    "headers",
    "group",
    "correlation_id",
    "metadata",
    "max_retries",
    "initial_interval",
    "backoff_multiplier",
    "max_interval",
    "max_duration",
    "delivery",
    "expires_after",
    "expires_at",
];
/// Where those of the call belong among them.
const CALL_AT: usize = 3;

impl TimerForm {
    /// What was sent, or what a link fills in.
    pub(crate) const fn of(fields: Fields) -> Self {
        Self(fields)
    }

    /// The form of a timer that there is. What browsers are not to be sent is left empty.
    pub(crate) fn of_timer(timer: &Timer, payloads: Payloads) -> Self {
        let definition = &timer.definition;
        let mut fields = Fields::default();
        let mut put = |name: &str, value: Option<String>| fields = fields.with(name, value.as_deref());
        let text = |json: &Option<JsonText>| json.as_ref().map(|json| json.as_str().to_owned());
        put("when", Some("at".to_owned()));
        put("execute_at", Some(timer.execute_at.to_string()));
        put("namespace", Some(definition.namespace.to_string()));
        put("key", definition.key.as_ref().map(ToString::to_string));
        put("group", definition.group.as_ref().map(ToString::to_string));
        put("correlation_id", definition.correlation_id.as_ref().map(ToString::to_string));
        if payloads != Payloads::Off {
            put("metadata", text(&definition.metadata));
            put("payload", text(&definition.callback.payload));
            let headers = definition.callback.headers.iter().map(|(name, value)| format!("{name}: {value}"));
            put("headers", Some(headers.collect::<Vec<_>>().join("\n")));
        }
        put("kind", Some(definition.callback.kind().to_owned()));
        for (name, value) in call_kinds::filled_by(&definition.callback) {
            put(name, Some(value));
        }
        if let Some(policy) = definition.retry_policy {
            put("max_retries", Some(policy.max_retries.to_string()));
            put("initial_interval", Some(policy.initial_interval.to_string()));
            put("backoff_multiplier", Some(policy.backoff_multiplier.to_string()));
            put("max_interval", Some(policy.max_interval.to_string()));
            put("max_duration", policy.max_duration.map(|span| span.to_string()));
        }
        put("delivery", Some(definition.delivery.as_str().to_owned()));
        match definition.options.expiry {
            Some(Expiry::After(span)) => put("expires_after", Some(span.to_string())),
            Some(Expiry::At(at)) => put("expires_at", Some(at.to_string())),
            None => {}
        }
        Self(fields)
    }

    /// The form of another timer like it: with a key of its own, and a time that is still to be said.
    pub(crate) fn of_copy(timer: &Timer, payloads: Payloads) -> Self {
        let fields = Self::of_timer(timer, payloads).0;
        Self(fields.with("key", None).with("execute_at", None).with("when", Some("delay")))
    }

    /// What such a copy is without, although the timer has it: what the form has no field for, and what browsers are not to be sent.
    pub(crate) fn not_copied(timer: &Timer, payloads: Payloads) -> Vec<&'static str> {
        let definition = &timer.definition;
        let Options { postpone_max, on_success, on_failure, .. } = &definition.options;
        let is_hidden = payloads == Payloads::Off;
        let parts = [
            ("callback", CallKind::named(definition.callback.kind()).is_none()),
            ("payload", is_hidden && definition.callback.payload.is_some()),
            ("headers", is_hidden && definition.callback.headers.iter().next().is_some()),
            ("metadata", is_hidden && definition.metadata.is_some()),
            ("on_success", on_success.is_some()),
            ("on_failure", on_failure.is_some()),
            ("postpone_max", postpone_max.is_some()),
        ];
        parts.into_iter().filter_map(|(name, is_left_out)| is_left_out.then_some(name)).collect()
    }

    /// The fields that another form has otherwise: name, value here, value there.
    pub(crate) fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let value = |form: &Self, name| match (name, form.instant()) {
            ("execute_at", Ok(instant)) => instant.filter(|_| form.is_instant()).map(|at| at.to_string()).unwrap_or_default(),
            _ => form.value(name).trim().replace("\r\n", "\n"),
        };
        let (before, after) = COMPARED.split_at(CALL_AT);
        let call = call_kinds::fields().map(|field| field.name);
        let names = before.iter().copied().chain(call).chain(after.iter().copied());
        let pairs = names.map(|name| (name, value(self, name), value(other, name)));
        pairs.filter(|(_, one, another)| one != another).collect()
    }

    pub(crate) const fn fields(&self) -> &Fields {
        &self.0
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    pub(crate) fn value(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_default()
    }

    /// The timer that is wanted.
    pub(crate) fn to_request(&self) -> Result<NewTimerRequest, Invalid> {
        let asked = self.asked()?.ok_or_else(|| match self.get("when") {
            Some("at") => Invalid::new("execute_at", "is required"),
            _ => Invalid::new("delay", "is required"),
        })?;
        let key = self.get("key").map(Key::parse).transpose()?;
        let on_conflict = match self.get("on_conflict").filter(|_| key.is_some()) {
            Some(text) => OnConflict::parse(text).ok_or_else(|| Invalid::new("on_conflict", "must be one of the choices"))?,
            None => OnConflict::default(),
        };
        let namespace = self.get("namespace").map(Namespace::parse).transpose()?.unwrap_or_default();
        Ok(NewTimerRequest {
            namespace,
            key,
            on_conflict,
            group: self.get("group").map(Group::parse).transpose()?,
            metadata: self.json("metadata", "metadata", limits::METADATA_BYTES_MAX)?,
            correlation_id: self.get("correlation_id").map(CorrelationId::parse).transpose()?,
            retry_policy: self.retry_policy()?,
            delivery: self.delivery()?,
            options: Options { expiry: self.expiry()?, ..Options::default() },
            ..NewTimerRequest::new(asked, Target::Callback(self.callback()?))
        })
    }

    /// What is to change of a timer. Its time is asked for only where it is another one.
    pub(crate) fn to_patch(&self, timer: &Timer) -> Result<Patch, Invalid> {
        fn put<T>(value: Option<T>) -> Field<T> {
            value.map_or(Field::Clear, Field::Set)
        }
        let asked = self.asked()?.filter(|asked| *asked != RequestedTime::At(timer.execute_at));
        let callback = if timer.definition.callback.is_event() { None } else { Some(self.callback()?) };
        Ok(Patch {
            asked,
            earliest_allowed: EarliestAllowed::MinDelay,
            callback,
            http: HttpPatch::default(),
            metadata: put(self.json("metadata", "metadata", limits::METADATA_BYTES_MAX)?),
            correlation_id: put(self.get("correlation_id").map(CorrelationId::parse).transpose()?),
            retry_policy: put(self.retry_policy()?),
            delivery: Some(self.delivery()?),
            group: put(self.get("group").map(Group::parse).transpose()?),
            expiry: put(self.expiry()?),
            ..Patch::default()
        })
    }

    /// Whether an instant is asked for, and not a delay.
    pub(crate) fn is_instant(&self) -> bool {
        let has_instant = || self.get("delay").is_none() && (self.get("execute_at").is_some() || self.get("date").is_some());
        self.get("when").map_or_else(has_instant, |when| when == "at")
    }

    pub(crate) fn asked(&self) -> Result<Option<RequestedTime>, Invalid> {
        if self.is_instant() {
            return Ok(self.instant()?.map(RequestedTime::At));
        }
        self.get("delay").map(|text| Span::parse("delay", text).map(RequestedTime::After)).transpose()
    }

    /// The zone that the date is in: UTC where none is named.
    pub(crate) fn zone(&self) -> Result<Zone, Invalid> {
        let rule = || Invalid::new("zone", "must be a time zone such as UTC or Europe/Berlin");
        Zone::named(self.get("zone").unwrap_or("UTC")).ok_or_else(rule)
    }

    /// The instant of the form: a date in a zone, or what a link, a timer or JSON says exactly. The field of a date has no microseconds
    /// and cannot tell the two hours of a night in autumn apart, so the exact instant counts for as long as the field shows it.
    pub(crate) fn instant(&self) -> Result<Option<Timestamp>, Invalid> {
        let exact = self.get("execute_at").map(|text| Timestamp::parse("execute_at", &completed(text))).transpose();
        let Some(date) = self.get("date") else { return exact };
        if has_offset(date) {
            return Timestamp::parse("execute_at", &completed(date)).map(Some);
        }
        let zone = self.zone()?;
        let wrong = || Invalid::new("execute_at", "must be a date and a time such as 2030-01-31T12:00");
        if let (Ok(Some(exact)), Some(shown)) = (exact, Zone::named("UTC").and_then(|utc| utc.instant(date)))
            && in_millis(zone.wall_clock(exact)) == shown
        {
            return Ok(Some(exact));
        }
        zone.instant(date).map(Some).ok_or_else(wrong)
    }

    /// What the field of the date shows: what was written in it, or the exact instant on a wall in this zone.
    pub(crate) fn date_shown(&self, zone: &Zone) -> String {
        let exact = self.get("execute_at").and_then(|text| Timestamp::parse("execute_at", &completed(text)).ok());
        match (self.get("date"), exact) {
            (Some(date), _) => date.to_owned(),
            (None, Some(exact)) => in_millis(zone.wall_clock(exact)).to_string().trim_end_matches('Z').to_owned(),
            (None, None) => self.value("execute_at").to_owned(),
        }
    }

    fn callback(&self) -> Result<Callback, Invalid> {
        let payload = self.json("callback.payload", "payload", limits::PAYLOAD_BYTES_MAX)?;
        let headers = self.headers()?;
        let kind = CallKind::chosen(self.get("kind"));
        let mut object = json!({"type": kind.name});
        for field in kind.fields() {
            let value = self.get(field.name);
            match field.input {
                Input::Flag { .. } => object[field.member] = value.is_some().into(),
                Input::Line { is_required: true, .. } => object[field.member] = value.unwrap_or_default().into(),
                Input::Line { .. } | Input::Choice { .. } => {
                    if let Some(value) = value {
                        object[field.member] = value.into();
                    }
                }
            }
        }
        if !headers.is_empty() {
            object["headers"] =
                headers.into_iter().map(|(name, value)| (name, value.into())).collect::<serde_json::Map<_, _>>().into();
        }
        let mut callback = Callback::from_json(&object.to_string())?;
        // The text stays as it was written.
        callback.payload = payload;
        Ok(callback)
    }

    pub(crate) fn headers(&self) -> Result<Vec<(String, String)>, Invalid> {
        let pair = |line: &str| {
            let (name, value) =
                line.split_once(':').ok_or_else(|| Invalid::new("headers", "must be lines such as Name: value"))?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        };
        let pairs = self
            .value("headers")
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(pair)
            .collect::<Result<Vec<_>, Invalid>>()?;
        Headers::parse(pairs.clone()).map_err(|invalid| invalid.named("headers"))?;
        Ok(pairs)
    }

    fn json(&self, field: &str, name: &str, bytes_max: usize) -> Result<Option<JsonText>, Invalid> {
        self.get(name).map(|text| JsonText::parse(field, text, bytes_max)).transpose()
    }

    pub(crate) fn retry_policy(&self) -> Result<Option<RetryPolicy>, Invalid> {
        let names = ["max_retries", "initial_interval", "backoff_multiplier", "max_interval", "max_duration"];
        if names.iter().all(|name| self.get(name).is_none()) {
            return Ok(None);
        }
        let mut object = serde_json::Map::new();
        for name in names {
            let Some(value) = self.get(name) else { continue };
            let is_number = matches!(name, "max_retries" | "backoff_multiplier");
            let number = value.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
            let value = match number.filter(|_| is_number) {
                Some(number) => number.into(),
                None => value.into(),
            };
            object.insert(name.to_owned(), value);
        }
        RetryPolicy::from_json(&serde_json::Value::Object(object).to_string()).map(Some)
    }

    fn delivery(&self) -> Result<Delivery, Invalid> {
        match self.get("delivery") {
            Some(text) => Delivery::parse(text).ok_or_else(|| Invalid::new("delivery", "must be one of the choices")),
            None => Ok(Delivery::default()),
        }
    }

    fn expiry(&self) -> Result<Option<Expiry>, Invalid> {
        match (self.get("expires_after"), self.get("expires_at")) {
            (Some(_), Some(_)) => Err(Invalid::new("expires_at", "must not be given together with expires_after")),
            (Some(after), None) => Span::parse("expires_after", after).map(|span| Some(Expiry::After(span))),
            (None, Some(at)) => Timestamp::parse("expires_at", &completed(at)).map(|at| Some(Expiry::At(at))),
            (None, None) => Ok(None),
        }
    }
}

/// Whole milliseconds, which the field of a date has.
fn in_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros() - at.as_micros().rem_euclid(1_000))
}

/// Whether the clock of a time is followed by its distance from UTC.
fn has_offset(text: &str) -> bool {
    text.split_once(['T', ' ']).is_some_and(|(_, clock)| clock.contains(['Z', 'z', '+', '-']))
}

/// A time as browsers write it: without seconds, and without an offset.
fn completed(text: &str) -> String {
    let text = text.replace(' ', "T");
    let text = if text.len() == 16 { format!("{text}:00") } else { text };
    let has_clock = text.split_once('T').is_some_and(|(_, clock)| !clock.is_empty());
    if !has_clock || has_offset(&text) { text } else { format!("{text}Z") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &str) -> Result<NewTimerRequest, String> {
        TimerForm::of(Fields::parse(form.as_bytes())).to_request().map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn a_form_is_a_timer() {
        let request = read(
            "when=delay&delay=15m&kind=http&url=https%3A%2F%2Fa%2Fb&payload=%7B%22n%22%3A+12345678901234567890%7D&headers=X-A%3A+1%0D%0AX-B%3A2\
             &namespace=shop&key=k&max_retries=5&initial_interval=10s&expires_after=1h&delivery=at_most_once",
        )
        .unwrap();
        let Target::Callback(callback) = &request.target else { panic!("no callback") };
        assert_eq!(callback.payload.as_ref().map(JsonText::as_str), Some(r#"{"n": 12345678901234567890}"#));
        assert_eq!(callback.headers.iter().collect::<Vec<_>>(), [("X-A", "1"), ("X-B", "2")]);
        assert_eq!((request.namespace.as_str(), request.retry_policy.unwrap().max_retries), ("shop", 5));
        assert_eq!((request.asked, request.delivery), (RequestedTime::After(Span::from_secs(900)), Delivery::AtMostOnce));
        assert!(read("when=at&execute_at=2030-01-31T12%3A00&url=http%3A%2F%2Fa").is_ok());
    }

    #[test]
    fn what_is_wrong_names_its_field() {
        for (form, refusal) in [
            ("", "delay is required"),
            ("when=at", "execute_at is required"),
            ("delay=soon", "delay must be a duration"),
            ("delay=1s&url=ftp%3A%2F%2Fa", "callback.url "),
            ("delay=1s&url=http%3A%2F%2Fa&payload=%7B", "callback.payload must"),
            ("delay=1s&url=http%3A%2F%2Fa&headers=x", "headers must be lines"),
            ("delay=1s&url=http%3A%2F%2Fa&max_retries=many", "retry_policy.max_retries must"),
            ("delay=1s&url=http%3A%2F%2Fa&expires_after=1h&expires_at=2030-01-01T00:00:00Z", "expires_at must not"),
        ] {
            let met = read(form).unwrap_err();
            assert!(met.starts_with(refusal), "{form}: {met}");
        }
    }

    #[test]
    fn a_date_is_in_its_zone() {
        let instant = |form: &str| TimerForm::of(Fields::parse(form.as_bytes())).instant().map_err(|invalid| invalid.to_string());
        let at = |text: &str| Ok(Some(Timestamp::parse("at", text).unwrap()));
        for (form, expected) in [
            ("date=2030-01-31T12:00", at("2030-01-31T12:00:00Z")),
            ("date=2030-01-31T12:00&zone=Europe/Berlin", at("2030-01-31T11:00:00Z")),
            ("date=2030-07-31T12:00:05.25&zone=Europe/Berlin", at("2030-07-31T10:00:05.25Z")),
            ("date=2030-01-31T12:00:00%2B05:00&zone=Europe/Berlin", at("2030-01-31T07:00:00Z")),
            ("execute_at=2030-01-31T12:00", at("2030-01-31T12:00:00Z")),
            // The field shows the instant that is stored, as exactly as it can.
            (
                "execute_at=2030-01-31T11:00:00.123456Z&date=2030-01-31T12:00:00.123&zone=Europe/Berlin",
                at("2030-01-31T11:00:00.123456Z"),
            ),
            ("execute_at=2026-10-25T01:30:00Z&date=2026-10-25T02:30&zone=Europe/Berlin", at("2026-10-25T01:30:00Z")),
            ("execute_at=2030-01-31T11:00:00.123456Z&date=2030-01-31T13:00&zone=Europe/Berlin", at("2030-01-31T12:00:00Z")),
            ("", Ok(None)),
            ("date=soon", Err("execute_at must be a date and a time such as 2030-01-31T12:00".to_owned())),
            ("date=2030-01-31T12:00&zone=Mars", Err("zone must be a time zone such as UTC or Europe/Berlin".to_owned())),
        ] {
            assert_eq!(instant(form), expected, "{form}");
        }
    }
}
