//! `GET /timers`: a page of the timers that match.

use commands::{Filter, ListQuery, Listed, Order, Sort};
use domain::{Caller, Invalid, Timestamp};
use http::Uri;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    auth::Permitted,
    cursor,
    envelope::{Answer, Envelope, ErrorEnvelope},
    error::ApiError,
    filter::{self, FilterParameters},
    limits, schema,
    view::TimerView,
};

/// The largest offset, with which a page has one timer.
const OFFSET_MAX: u64 = limits::PASSED_OVER_MAX - 1;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimerPage {
    pub timers: Vec<TimerView>,
    /// How many timers match in all.
    #[schema(minimum = 0, example = 2)]
    pub total: u64,
    /// Whether `total` is an estimate, as it may be where there are many.
    #[schema(example = false)]
    pub total_is_estimate: bool,
    #[schema(minimum = 1, maximum = 200, example = 50)]
    pub limit: u32,
    #[schema(minimum = 0, example = 0)]
    pub offset: u64,
    /// Where the next page begins: send it as `cursor`. `null` when this was the last page.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
    /// How many timers were looked at.
    #[schema(minimum = 0, example = 2)]
    pub scanned: u64,
    /// `false` when the time for one answer, 250 ms, ran out before the page was full: go on with `next_cursor`, also after an empty
    /// page.
    #[schema(example = true)]
    pub complete: bool,
}

/// List timers
///
/// One page of the timers that match, newest first unless asked otherwise. To read on, send `next_cursor` of the
/// answer as `cursor`: pages by cursor neither repeat nor miss a timer that stays where it is, and stay fast however
/// far one reads; `offset` is for jumping.
///
/// Conditions that no index knows are looked for among all others, at most for 250 ms an answer: see `complete`. Beside the named
/// parameters, `metadata.PATH=VALUE` asks about a scalar of the metadata by its path (`metadata.items.0.id=42`), and may be repeated.
/// Numbers are compared as they are written.
#[utoipa::path(
    get, path = "/timers", tag = "timers", operation_id = "listTimers", security(("ApiKey" = [])),
    params(FilterParameters, Parameters),
    responses(
        (status = 200, description = "The page: `success`.", body = Envelope<TimerPage>),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn list(Permitted(commands): Permitted, uri: Uri) -> Result<Answer<TimerPage>, ApiError> {
    let query = query(&uri, &commands.caller)?;
    let listed = commands.list(&query).await?;
    Ok(Answer::ok("success", page(listed, &query, &commands.caller, commands.clock.now())))
}

fn page(listed: Listed, query: &ListQuery, caller: &Caller, now: Timestamp) -> TimerPage {
    TimerPage {
        timers: listed.page.timers.into_iter().map(|summary| TimerView::of_summary(summary, now)).collect(),
        total: listed.total.timers,
        total_is_estimate: listed.total.is_estimate,
        limit: query.limit,
        offset: query.offset,
        next_cursor: listed.page.next.map(|next| cursor::write(next, query.sort, query.order, caller)),
        scanned: listed.page.scanned,
        complete: listed.page.complete,
    }
}

/// What a query can say about the page.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// How many timers a page has at most; 50 unless given.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// How many timers to pass over. Together with `limit` at most 10,000: `cursor` leads further.
    #[param(value_type = Option<u64>, minimum = 0, maximum = 9999)]
    offset: Option<String>,
    /// By which time to sort; `created_at` unless given.
    #[param(value_type = Option<schema::Sort>)]
    sort: Option<String>,
    /// `desc` (latest first) unless given.
    #[param(value_type = Option<schema::Order>)]
    order: Option<String>,
    /// `next_cursor` of an earlier answer with the same `sort` and `order`, to this key or one with the same namespaces.
    cursor: Option<String>,
}

fn query(uri: &Uri, caller: &Caller) -> Result<ListQuery, ApiError> {
    let (filter, parameters) = filter::read::<Parameters>(uri)?;
    Ok(parameters.into_query(filter, caller)?)
}

impl Parameters {
    fn into_query(self, filter: Filter, caller: &Caller) -> Result<ListQuery, Invalid> {
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
        let limit = limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(limits::PAGE_TIMERS_DEFAULT);
        let offset = match self.offset {
            None => 0,
            // One that is too large is told below how to read on.
            Some(text) => number(&text).ok_or_else(|| not_within("offset", 0, OFFSET_MAX))?,
        };
        if offset.saturating_add(limit.into()) > limits::PASSED_OVER_MAX {
            let rule = format!("and limit must not lead further than {} timers: read on with cursor", limits::PASSED_OVER_MAX);
            return Err(Invalid::new("offset", rule));
        }
        let after = self.cursor.map(|token| cursor::read(&token, sort, order, caller)).transpose()?;
        Ok(ListQuery { filter, sort, order, limit, offset, after, ..ListQuery::default() })
    }
}

fn whole(name: &str, text: Option<String>, min: u64, max: u64) -> Result<Option<u64>, Invalid> {
    let Some(text) = text else { return Ok(None) };
    number(&text).filter(|number| (min..=max).contains(number)).map(Some).ok_or_else(|| not_within(name, min, max))
}

fn number(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits)
}

fn not_within(name: &str, min: u64, max: u64) -> Invalid {
    Invalid::new(name, format!("must be a whole number from {min} to {max}"))
}

#[cfg(test)]
mod tests;
