use std::borrow::Cow;

use axum::extract::Query;
use commands::PeriodRequest;
use domain::{Invalid, Namespace, Span, Timestamp, names_of, quoted};
use http::Uri;
use serde::{Deserialize, de::DeserializeOwned};
use url::form_urlencoded;
use utoipa::IntoParams;

use crate::error::ApiError;

/// How many namespaces one request can name.
const NAMESPACES_MAX: usize = domain::limits::KEY_NAMESPACES_MAX;

/// The time that is asked for; every parameter is a text until it is judged under its name.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PeriodParameters {
    /// Where the first bucket begins, or a time within it; sixty buckets before `to` where only that is given.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<String>,
    /// Where the last bucket ends, or a time within it; sixty buckets after `from` where only that is given.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<String>,
    /// How long a bucket is, in whole minutes up to `366d`; `1m` unless given. There are at most 1,440 buckets.
    #[param(example = "5m")]
    step: Option<String>,
    /// Only this namespace, or these, with commas between; all that the key opens unless given.
    #[param(min_length = 1, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    namespace: Option<String>,
}

/// Whose receivers are asked for.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct NamespaceParameters {
    /// Only this namespace, or these, with commas between; all that the key opens unless given.
    #[param(min_length = 1, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    namespace: Option<String>,
}

impl PeriodParameters {
    pub(crate) fn read(uri: &Uri) -> Result<(Vec<Namespace>, PeriodRequest), ApiError> {
        let Self { from, to, step, namespace } = read(uri)?;
        let request = PeriodRequest {
            from: from.map(|text| Timestamp::parse("from", &text)).transpose()?,
            to: to.map(|text| Timestamp::parse("to", &text)).transpose()?,
            step: step.map(|text| Span::parse("step", &text)).transpose()?,
        };
        Ok((namespaces(namespace.as_deref())?, request))
    }
}

impl NamespaceParameters {
    pub(crate) fn read(uri: &Uri) -> Result<Vec<Namespace>, ApiError> {
        let Self { namespace } = read(uri)?;
        Ok(namespaces(namespace.as_deref())?)
    }
}

fn namespaces(text: Option<&str>) -> Result<Vec<Namespace>, Invalid> {
    let Some(text) = text else { return Ok(Vec::new()) };
    if text.split(',').count() > NAMESPACES_MAX {
        return Err(Invalid::new("namespace", format!("must name at most {NAMESPACES_MAX} namespaces")));
    }
    let mut named: Vec<_> = text.split(',').map(Namespace::parse).collect::<Result<_, _>>()?;
    named.sort();
    named.dedup();
    Ok(named)
}

/// The parameters of a request. Refuses unknown names, and names that are given twice.
pub(crate) fn read<T: DeserializeOwned>(uri: &Uri) -> Result<T, ApiError> {
    let known = names_of::<T>();
    let mut seen: Vec<Cow<'_, str>> = Vec::new();
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        if !known.contains(&name.as_ref()) {
            return Err(Invalid::new(quoted(&name), "is not a known parameter").into());
        }
        // What is no UTF-8 was replaced while it was decoded, and would mean something else now.
        if value.contains(char::REPLACEMENT_CHARACTER) {
            return Err(Invalid::new(name, "must be valid UTF-8").into());
        }
        if seen.contains(&name) {
            return Err(Invalid::new(name, "must not be given twice").into());
        }
        seen.push(name);
    }
    // The names are known and there once, and any text will do: nothing is left that could be wrong.
    let Query(parameters) = Query::try_from_uri(uri).map_err(|_| ApiError::Internal)?;
    Ok(parameters)
}
