//! `GET /timers`: a page of the timers that match.

use std::borrow::Cow;

use axum::extract::Query;
use commands::{Filter, ListQuery, Listed, Order, SEARCH_BUDGET, Sort};
use domain::{Invalid, Namespace, Status, Timestamp, names_of, quoted};
use http::Uri;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};

use crate::{
    auth::Permitted,
    cursor,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    limits, schema,
    view::TimerView,
};

const OFFSET_MAX: u64 = i64::MAX as u64;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimerPage {
    pub timers: Vec<TimerView>,
    /// How many timers match in all.
    #[schema(minimum = 0, example = 2)]
    pub total: u64,
    /// Whether `total` is an estimate, as it may be past 100,000.
    #[schema(example = false)]
    pub total_is_estimate: bool,
    #[schema(minimum = 1, maximum = 200, example = 50)]
    pub limit: u32,
    #[schema(minimum = 0, example = 0)]
    pub offset: u64,
    /// Where the next page begins: send it as `cursor`. `null` when this was the last page.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}

/// List timers
///
/// One page of the timers that match, newest first unless asked otherwise. To read on, send `next_cursor` of the
/// answer as `cursor`: pages by cursor neither repeat nor miss a timer that stays where it is, and stay fast however
/// far one reads; `offset` is for jumping.
#[utoipa::path(
    get, path = "/timers", tag = "timers", operation_id = "listTimers", security(("ApiKey" = [])),
    params(Parameters),
    responses(
        (status = 200, description = "The page: `success`.", body = Envelope<TimerPage>),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn list(Permitted(commands): Permitted, uri: Uri) -> Result<Answer<TimerPage>, ApiError> {
    let query = Parameters::read(&uri)?.into_query()?;
    let listed = commands.list(&query).await?;
    Ok(Answer::ok("success", page(listed, &query, commands.clock.now())))
}

fn page(listed: Listed, query: &ListQuery, now: Timestamp) -> TimerPage {
    TimerPage {
        timers: listed.page.timers.into_iter().map(|summary| TimerView::of_summary(summary, now)).collect(),
        total: listed.total.timers,
        total_is_estimate: listed.total.is_estimate,
        limit: query.limit,
        offset: query.offset,
        next_cursor: listed.page.next.map(|next| cursor::write(next, query.sort, query.order)),
    }
}

/// What a query can say; every parameter is a text until it is judged under its name.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// Only timers in this status.
    #[param(value_type = Option<Status>)]
    status: Option<String>,
    /// Only timers of this namespace.
    #[param(min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    namespace: Option<String>,
    /// How many timers a page has at most; 50 unless given.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// How many timers to pass over.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9223372036854775807u64)]
    offset: Option<String>,
    /// By which time to sort; `created_at` unless given.
    #[param(value_type = Option<schema::Sort>)]
    sort: Option<String>,
    /// `desc` (latest first) unless given.
    #[param(value_type = Option<schema::Order>)]
    order: Option<String>,
    /// `next_cursor` of an earlier answer with the same `sort` and `order`.
    cursor: Option<String>,
}

impl Parameters {
    fn read(uri: &Uri) -> Result<Self, ApiError> {
        let known = names_of::<Self>();
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

    fn into_query(self) -> Result<ListQuery, Invalid> {
        let status = self.status.map(|text| {
            let rule = "must be pending, executing, completed, failed, canceled, paused or expired";
            Status::parse(&text).ok_or_else(|| Invalid::new("status", rule))
        });
        let sort = match self.sort.as_deref() {
            None | Some("created_at") => Sort::CreatedAt,
            Some("execute_at") => Sort::ExecuteAt,
            Some(_) => return Err(Invalid::new("sort", "must be created_at or execute_at")),
        };
        let order = match self.order.as_deref() {
            None | Some("desc") => Order::Descending,
            Some("asc") => Order::Ascending,
            Some(_) => return Err(Invalid::new("order", "must be asc or desc")),
        };
        let limit = whole("limit", self.limit, 1, limits::PAGE_TIMERS_MAX.into())?;
        Ok(ListQuery {
            filter: Filter {
                status: status.transpose()?.into_iter().collect(),
                namespaces: self.namespace.map(|text| Namespace::parse(&text)).transpose()?.into_iter().collect(),
                ..Filter::default()
            },
            sort,
            order,
            limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(limits::PAGE_TIMERS_DEFAULT),
            offset: whole("offset", self.offset, 0, OFFSET_MAX)?.unwrap_or(0),
            after: self.cursor.map(|token| cursor::read(&token, sort, order)).transpose()?,
            budget: SEARCH_BUDGET,
        })
    }
}

fn whole(name: &str, text: Option<String>, min: u64, max: u64) -> Result<Option<u64>, Invalid> {
    let Some(text) = text else { return Ok(None) };
    let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse().ok().filter(|number| is_digits && (min..=max).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(Invalid::new(name, format!("must be a whole number from {min} to {max}"))),
    }
}

#[cfg(test)]
mod tests;
