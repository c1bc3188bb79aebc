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
                dt { "Database" } dd { @if health.database { "answers" } @else { span.bad { "does not answer" } } }
                @for probe in &config.health {
                    @let reading = (probe.read)();
                    dt { (probe.name.replace('_', " ")) } dd.bad[!reading.is_well] { (reading.value) }
                }
            } } }
            section.card.span-6 { header { h2 { "Limits" } } div.body { dl.facts {
                @for (name, value) in &limits { dt { (name) } dd { (value) } }
            } } }
            @if visitor.is_administrator() {
                section.card.span-12 { header { h2 { "Settings" } span.aside { "as they hold; secrets are masked" } } div.body { dl.facts {
                    @for (name, value) in &config.settings { dt.mono { (name) } dd.mono { @if value.is_empty() { span.muted { "not set" } } @else { (value) } } }
                } } }
            }
        }
        p.muted { a href={ (config.base_path) "/docs" } { "API documentation" } " · " a href={ (config.base_path) "/metrics" } { "metrics" } " · " a href={ (config.base_path) "/healthz" } { "health" } }
    };
    Ok(frame::page(&visitor, Some(Section::About), "About", body))
}
