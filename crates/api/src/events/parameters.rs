use commands::{EventType, EventTypes, Filter};
use domain::{Invalid, Timestamp};
use http::Uri;
use serde::Deserialize;
use utoipa::IntoParams;

use super::token;
use crate::{error::ApiError, filter};

/// The parameters of a stream, beside those of the filter.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Parameters {
    /// Only events of these types, separated by commas; all of them unless given.
    #[param(example = "created,finished")]
    types: Option<String>,
    /// The id of an event: only what happened after it.
    after: Option<String>,
}

/// What is to be followed, and from where on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub filter: Filter,
    pub types: EventTypes,
    pub after: Option<Timestamp>,
}

impl Wanted {
    pub(super) fn read(uri: &Uri, last_event_id: Option<&str>) -> Result<Self, ApiError> {
        let (filter, Parameters { types: wanted, after }) = filter::read(uri)?;
        let after = match (last_event_id, after) {
            // A browser that resumes repeats the query of its first request.
            (Some(id), _) => Some(token::read("Last-Event-ID", id)?),
            (None, Some(id)) => Some(token::read("after", &id)?),
            (None, None) => None,
        };
        Ok(Self { filter, types: wanted.map_or(Ok(EventTypes::ALL), |text| types(&text))?, after })
    }
}

fn types(text: &str) -> Result<EventTypes, Invalid> {
    let rule = || Invalid::new("types", "must be some of created, changed, attempt and finished, separated by commas");
    let types: Option<Vec<EventType>> = text.split(',').map(EventType::parse).collect();
    types.map(EventTypes::of).ok_or_else(rule)
}
