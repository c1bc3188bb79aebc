//! `/console/timers.csv`, `.json` and `.ndjson`: what the API exports for the same filter, for a viewer that has logged in.

use axum::response::Response;

use crate::{fields::Fields, filter_words::FilterWords, problem::Problem, visitor::Visitor};

pub(crate) async fn csv(visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    export(&visitor, &fields, "csv")
}

pub(crate) async fn json(visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    export(&visitor, &fields, "json")
}

pub(crate) async fn ndjson(visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    export(&visitor, &fields, "ndjson")
}

/// The whole filter, not the page that is looked at.
fn export(visitor: &Visitor, fields: &Fields, format: &str) -> Result<Response, Problem> {
    let words = FilterWords::parse(fields.get("q").unwrap_or_default(), visitor.now())?;
    visitor.commands.check_filter(&words.filter)?;
    let export = visitor.shared.config.export.as_ref().ok_or(Problem::NoSuchPage)?;
    export((*visitor.commands).clone(), words.filter, format).ok_or(Problem::NoSuchPage)
}
