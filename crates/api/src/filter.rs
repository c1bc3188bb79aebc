//! Which timers are meant, as clients say it: in the parameters of a query, or in a JSON object with the same names.

mod object;

use std::borrow::Cow;

use axum::extract::Query;
use commands::{Filter, Period};
use domain::{CorrelationId, Group, Invalid, Key, MetadataPath, Namespace, Status, Timestamp, limits, names_of, quoted};
use http::Uri;
use serde::{Deserialize, de::DeserializeOwned};
use url::form_urlencoded;
use utoipa::IntoParams;

pub(crate) use self::object::BulkFilter;
use crate::{error::ApiError, limits::FILTER_NAMESPACES_MAX};

/// What the parameters that ask about metadata begin with.
const METADATA: &str = "metadata.";

/// What a query can say about the timers that are meant; every parameter is a text until it is judged under its name. Beside these,
/// `metadata.PATH=VALUE` asks about a scalar of the metadata, and may be repeated with other paths.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FilterParameters {
    /// Only timers in this status, or in one of several, separated by commas.
    #[param(
        value_type = Option<String>,
        pattern = "^(pending|executing|completed|failed|canceled|paused|expired)(,(pending|executing|completed|failed|canceled|paused|expired)){0,9}$",
        example = "pending,failed"
    )]
    status: Option<String>,
    /// Only timers of this namespace, or of one of several, separated by commas.
    #[param(min_length = 1, pattern = r"^[^\x00-\x1f\x7f-\x9f,]{1,255}(,[^\x00-\x1f\x7f-\x9f,]{1,255}){0,99}$")]
    namespace: Option<String>,
    /// Only timers with this key.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    key: Option<String>,
    /// Only timers whose key begins with this.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    key_prefix: Option<String>,
    /// Only timers of this group.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    group: Option<String>,
    /// Only timers whose `execute_at` is not earlier.
    #[param(format = DateTime)]
    due_from: Option<String>,
    /// Only timers whose `execute_at` is earlier.
    #[param(format = DateTime)]
    due_to: Option<String>,
    /// Only timers that were not created earlier.
    #[param(format = DateTime)]
    created_from: Option<String>,
    /// Only timers that were created earlier.
    #[param(format = DateTime)]
    created_to: Option<String>,
    /// Only timers with this correlation id.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    correlation_id: Option<String>,
    /// Only timers that call this receiver: `host:port`, or a NATS subject.
    #[param(min_length = 1, max_length = 1024, pattern = r"^[^\x00]*$", example = "shop.example:443")]
    destination: Option<String>,
    /// Only timers whose last error contains this.
    #[param(min_length = 1, max_length = 1024, pattern = r"^[^\x00]*$")]
    error: Option<String>,
}

/// The names of the parameters that a filter has, apart from those about metadata.
pub(crate) fn names() -> &'static [&'static str] {
    names_of::<FilterParameters>()
}

/// Reads a query into its filter and the parameters of another struct. Refuses names that neither knows, and names that are given
/// twice.
pub(crate) fn read<P: DeserializeOwned>(uri: &Uri) -> Result<(Filter, P), ApiError> {
    let (own, others) = (names(), names_of::<P>());
    let mut seen: Vec<Cow<'_, str>> = Vec::new();
    let mut metadata = Vec::new();
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        let path = name.strip_prefix(METADATA);
        if path.is_none() && !own.contains(&name.as_ref()) && !others.contains(&name.as_ref()) {
            return Err(Invalid::new(quoted(&name), "is not a known parameter").into());
        }
        let shown = || if path.is_some() { Cow::Owned(quoted(&name)) } else { name.clone() };
        // What is no UTF-8 was replaced while it was decoded, and would mean something else now.
        if value.contains(char::REPLACEMENT_CHARACTER) || path.is_some_and(|path| path.contains(char::REPLACEMENT_CHARACTER)) {
            return Err(Invalid::new(shown(), "must be valid UTF-8").into());
        }
        if seen.contains(&name) {
            return Err(Invalid::new(shown(), "must not be given twice").into());
        }
        if let Some(path) = path {
            metadata.push((path.to_owned(), value.into_owned()));
        }
        seen.push(name);
    }
    // The names are known and there once, and any text will do: nothing is left that could be wrong.
    let Query(parameters) = Query::<FilterParameters>::try_from_uri(uri).map_err(|_| ApiError::Internal)?;
    let Query(rest) = Query::<P>::try_from_uri(uri).map_err(|_| ApiError::Internal)?;
    Ok((Texts::of_parameters(parameters, metadata).judge()?, rest))
}

/// What was said, before it is judged.
struct Texts {
    status: Option<Vec<String>>,
    namespace: Option<Vec<String>>,
    key: Option<String>,
    key_prefix: Option<String>,
    group: Option<String>,
    due: (Option<String>, Option<String>),
    created: (Option<String>, Option<String>),
    correlation_id: Option<String>,
    destination: Option<String>,
    metadata: Vec<(String, String)>,
    error: Option<String>,
}

impl Texts {
    fn of_parameters(given: FilterParameters, metadata: Vec<(String, String)>) -> Self {
        let several = |text: String| text.split(',').map(str::to_owned).collect();
        Self {
            status: given.status.map(several),
            namespace: given.namespace.map(several),
            key: given.key,
            key_prefix: given.key_prefix,
            group: given.group,
            due: (given.due_from, given.due_to),
            created: (given.created_from, given.created_to),
            correlation_id: given.correlation_id,
            destination: given.destination,
            metadata,
            error: given.error,
        }
    }

    fn judge(self) -> Result<Filter, Invalid> {
        let named = |name: &'static str| move |invalid: Invalid| invalid.named(name);
        Ok(Filter {
            status: statuses(self.status.unwrap_or_default())?,
            namespaces: namespaces(self.namespace.unwrap_or_default())?,
            key: self.key.as_deref().map(Key::parse).transpose()?,
            key_prefix: self.key_prefix.map(|text| Key::parse(&text).map(|_| text)).transpose().map_err(named("key_prefix"))?,
            group: self.group.as_deref().map(Group::parse).transpose()?,
            due: period(["due_from", "due_to"], self.due)?,
            created: period(["created_from", "created_to"], self.created)?,
            correlation_id: self.correlation_id.as_deref().map(CorrelationId::parse).transpose()?,
            destination: self.destination.map(|text| searched("destination", text)).transpose()?,
            metadata: conditions(self.metadata)?,
            error: self.error.map(|text| searched("error", text)).transpose()?,
            ..Filter::default()
        })
    }
}

fn statuses(texts: Vec<String>) -> Result<Vec<Status>, Invalid> {
    let mut statuses = Vec::new();
    for text in texts {
        let status = Status::parse(&text).ok_or_else(|| Invalid::new("status", format!("must be {}", one_of_all())))?;
        if !statuses.contains(&status) {
            statuses.push(status);
        }
    }
    Ok(statuses)
}

fn one_of_all() -> String {
    let names = Status::ALL.map(Status::as_str);
    match names.split_last() {
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

fn namespaces(texts: Vec<String>) -> Result<Vec<Namespace>, Invalid> {
    if texts.len() > FILTER_NAMESPACES_MAX {
        return Err(Invalid::new("namespace", format!("must not name more than {FILTER_NAMESPACES_MAX}")));
    }
    let mut namespaces = Vec::new();
    for text in texts {
        let namespace = Namespace::parse(&text)?;
        if !namespaces.contains(&namespace) {
            namespaces.push(namespace);
        }
    }
    Ok(namespaces)
}

fn period(names: [&str; 2], (from, to): (Option<String>, Option<String>)) -> Result<Period, Invalid> {
    let from = from.map(|text| Timestamp::parse(names[0], &text)).transpose()?;
    let to = to.map(|text| Timestamp::parse(names[1], &text)).transpose()?;
    if from.zip(to).is_some_and(|(from, to)| from >= to) {
        return Err(Invalid::new(names[1], format!("must be later than {}", names[0])));
    }
    Ok(Period { from, to })
}

fn searched(name: &str, text: String) -> Result<String, Invalid> {
    if text.is_empty() || text.chars().count() > limits::SEARCHED_CHARS_MAX {
        return Err(Invalid::new(name, format!("must have 1 to {} characters", limits::SEARCHED_CHARS_MAX)));
    }
    without_nul(name, &text)?;
    Ok(text)
}

/// No database could compare it.
fn without_nul(name: &str, text: &str) -> Result<(), Invalid> {
    if text.contains('\0') {
        return Err(Invalid::new(name, "must not contain the character U+0000"));
    }
    Ok(())
}

fn conditions(texts: Vec<(String, String)>) -> Result<Vec<(MetadataPath, String)>, Invalid> {
    if texts.len() > limits::METADATA_CONDITIONS_MAX {
        return Err(Invalid::new("metadata", format!("must not have more than {} conditions", limits::METADATA_CONDITIONS_MAX)));
    }
    for (at, (path, _)) in texts.iter().enumerate() {
        if texts[..at].iter().any(|(earlier, _)| earlier == path) {
            return Err(Invalid::new(format!("metadata.{}", quoted(path)), "must not be given twice"));
        }
    }
    let condition = |(path, text): (String, String)| {
        without_nul("metadata", &path)?;
        without_nul("metadata", &text)?;
        let path = MetadataPath::parse("metadata", &path)?;
        if text.chars().count() > limits::SEARCHED_CHARS_MAX {
            let rule = format!("must not be compared with more than {} characters", limits::SEARCHED_CHARS_MAX);
            return Err(Invalid::new("metadata", rule));
        }
        Ok((path, text))
    };
    texts.into_iter().map(condition).collect()
}

#[cfg(test)]
mod tests;
