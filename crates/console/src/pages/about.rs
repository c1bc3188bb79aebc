//! `/console/about`: what is installed, and how it is set up.

use domain::limits;
use maud::{Markup, html};

use crate::{
    frame::{self, Section},
    problem::Problem,
    text,
    visitor::Visitor,
};

pub(crate) async fn show(visitor: Visitor) -> Result<Markup, Problem> {
    let config = &visitor.shared.config;
    let health = visitor.commands.health().await;
    // Where it is concerns the administrator alone.
    let store = if visitor.is_administrator() { &config.store } else { config.store.split(' ').next().unwrap_or_default() };
    let limits = [
        ("Payload", text::number(limits::PAYLOAD_BYTES_MAX as u64) + " bytes"),
        ("Metadata", text::number(limits::METADATA_BYTES_MAX as u64) + " bytes"),
        (
            "Headers of a call",
            format!("{}, together {} bytes", limits::HEADERS_MAX, text::number(limits::HEADERS_BYTES_MAX as u64)),
        ),
        ("Retries", text::number(limits::RETRIES_MAX.into())),
        ("Recorded attempts", text::number(limits::ATTEMPTS_KEPT as u64)),
    ];
    let body = html! {
        div.title { h1 { "About" } span.muted { "Timer Platform " (config.version) } }
        div.grid {
            section.card.span-6 { header { h2 { "Health of this node" } } div.body { dl.facts {
                dt { "Store" } dd { (store) }
                dt { "Database" } dd { @if health.database { "answers" } @else { span.bad { "does not answer" } } }
                @for probe in &config.health {
                    @let reading = (probe.read)();
                    @let (name, value) = worded(probe.name, &reading.value);
                    dt { (name) } dd.bad[!reading.is_well] { (value) }
                }
            } } }
            section.card.span-6 { header { h2 { "Limits" } } div.body { dl.facts {
                @for (name, value) in &limits { dt { (name) } dd { (value) } }
            } } }
            @if visitor.is_administrator() {
                section.card.span-12 { header { h2 { "Settings" } span.aside { "those in effect; secrets are masked" } } div.body { dl.facts {
                    @for (name, value) in &config.settings { dt.mono { (name) } dd.mono { @if value.is_empty() { span.muted { "not set" } } @else { (value) } } }
                } } }
            }
        }
        p.muted { a href={ (config.base_path) "/docs" } { "API documentation" } " · " a href={ (config.base_path) "/openapi.json" } { "OpenAPI document" } " · " a href={ (config.base_path) "/metrics" } { "metrics" } " · " a href={ (config.base_path) "/healthz" } { "health" } }
    };
    Ok(frame::page(&visitor, Some(Section::About), "About", body))
}

/// What `/healthz` tells a program, in words.
fn worded(name: &str, value: &str) -> (String, String) {
    let seconds = name.strip_suffix("_seconds").and_then(|_| value.parse::<f64>().ok());
    let text = match (seconds, serde_json::from_str::<serde_json::Value>(value)) {
        (Some(seconds), _) => {
            let sign = if seconds < 0.0 { "−" } else { "" };
            format!("{sign}{}", text::micros((seconds.abs() * 1e6).round() as u64))
        }
        (None, Ok(permits)) if permits["in_flight"].is_u64() => {
            let number = |name: &str| text::number(permits[name].as_u64().unwrap_or_default());
            let exhausted = if permits["exhausted"] == true { ", exhausted" } else { "" };
            format!("{} of {} in flight{exhausted}", number("in_flight"), number("max"))
        }
        _ => value.to_owned(),
    };
    let name = name.trim_end_matches("_seconds").replace('_', " ");
    let first = name.chars().next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    (format!("{first}{}", name.get(first.len()..).unwrap_or_default()), text)
}

#[cfg(test)]
mod tests {
    use domain::Rights;

    use super::worded;
    use crate::rig::Rig;

    #[tokio::test]
    async fn the_store_is_named() {
        let rig = Rig::new();
        assert!(rig.get("/console/about").await.text.contains("<dt>Store</dt><dd>SQLite file /var/lib/timer.db</dd>"));
        let (_, holder) = rig.holder(&["a"], Rights::Read).await;
        assert!(rig.get_as(&holder, "/console/about").await.text.contains("<dt>Store</dt><dd>SQLite</dd>"));
    }

    #[test]
    fn health_is_told_in_words() {
        for (name, value, expected) in [
            ("clock_skew_seconds", "0.000109", ("Clock skew", "109 µs")),
            ("clock_skew_seconds", "-1.5", ("Clock skew", "−1.5 s")),
            ("lag_seconds", "0.0", ("Lag", "0 s")),
            ("permits", r#"{"in_flight":3,"max":2048,"exhausted":false}"#, ("Permits", "3 of 2,048 in flight")),
            ("egress", "all", ("Egress", "all")),
            ("shards", "64", ("Shards", "64")),
        ] {
            let (told, text) = worded(name, value);
            assert_eq!((told.as_str(), text.as_str()), expected);
        }
    }
}
