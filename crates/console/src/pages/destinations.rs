//! `/console/destinations`: the receivers, as all nodes saw them.

use commands::{DestinationHealth, DestinationStatus};
use maud::{Markup, html};

use crate::{
    filter_words::word,
    text::{self, micros, number},
    visitor::Visitor,
};

/// A word, its colour, and the rule behind it.
fn health(health: DestinationHealth) -> Markup {
    let (name, class, rule) = match health {
        DestinationHealth::Good => ("good", "completed", "Most calls deliver, and within a second"),
        DestinationHealth::Slow => ("slow", "expired", "Half of its calls take longer than a second"),
        DestinationHealth::Failing => ("failing", "failed", "The last five calls failed, or half of the latest"),
        DestinationHealth::Silent => ("silent", "canceled", "No call ended within ten minutes"),
    };
    html! { span class={ "status " (class) } title=(rule) { (name) } }
}

pub(crate) fn table(visitor: &Visitor, destinations: &[DestinationStatus]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label="Destinations" { table {
            thead { tr {
                th { "Destination" } th { "Health" } th.num { "In flight" } th.num { "Delivered, 10 min" } th.num { "Failed, 10 min" }
                th.num { "p50" } th.num { "p99" } th.num { "Pending retries" } th { "Last error" }
            } }
            tbody { @for one in destinations {
                tr {
                    td.cut { a href=(visitor.link_to_timers(&word("dest:", &one.name))) { (one.name) } }
                    td { (health(one.health)) }
                    td.num { (number(one.in_flight.into())) }
                    td.num { (number(one.delivered_10m.into())) }
                    td.num { @if one.failed_10m > 0 { span.bad { (number(one.failed_10m.into())) } } @else { "0" } }
                    td.num { (one.took_p50_micros.map(micros).unwrap_or_default()) }
                    td.num { (one.took_p99_micros.map(micros).unwrap_or_default()) }
                    td.num { (number(one.pending_retries.into())) }
                    @let error = one.last_error.as_deref().unwrap_or_default();
                    td.cut.muted title=(error) { (text::cut(error, 80)) }
                }
            } }
        } }
    }
}
