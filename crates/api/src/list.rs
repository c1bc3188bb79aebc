//! `GET /timers`: a page of the timers that match.

use axum::extract::RawQuery;
use commands::{Filter, ListQuery, Listed, Order, Sort};
use domain::{Invalid, Namespace, Status, Timestamp, quoted};
use serde::Serialize;
use url::form_urlencoded;
use utoipa::ToSchema;

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
    params(
        ("status" = Option<schema::Status>, Query, description = "Only timers in this status."),
        ("namespace" = Option<String>, Query, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$", description = "Only timers of this namespace."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "How many timers a page has at most; 50 unless given."),
        ("offset" = Option<u64>, Query, minimum = 0, maximum = 9223372036854775807u64, description = "How many timers to pass over."),
        ("sort" = Option<schema::Sort>, Query, description = "By which time to sort; `created_at` unless given."),
        ("order" = Option<schema::Order>, Query, description = "`desc` (latest first) unless given."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of an earlier answer with the same `sort` and `order`."),
    ),
    responses(
        (status = 200, description = "The page: `success`.", body = Envelope<TimerPage>),
        (status = 400, description = "A parameter breaks a rule; the message names both.", body = ErrorEnvelope),
    )
)]
pub(crate) async fn list(Permitted(commands): Permitted, RawQuery(query): RawQuery) -> Result<Answer<TimerPage>, ApiError> {
    let query = parse(query.as_deref().unwrap_or_default())?;
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

#[derive(Default)]
struct Parameters {
    status: Option<String>,
    namespace: Option<String>,
    limit: Option<String>,
    offset: Option<String>,
    sort: Option<String>,
    order: Option<String>,
    cursor: Option<String>,
}

impl Parameters {
    fn read(query: &str) -> Result<Self, Invalid> {
        let mut parameters = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place = match name.as_ref() {
                "status" => &mut parameters.status,
                "namespace" => &mut parameters.namespace,
                "limit" => &mut parameters.limit,
                "offset" => &mut parameters.offset,
                "sort" => &mut parameters.sort,
                "order" => &mut parameters.order,
                "cursor" => &mut parameters.cursor,
                _ => return Err(Invalid::new(quoted(&name), "is not a known parameter")),
            };
            // What is no UTF-8 was replaced while it was decoded, and would mean something else now.
            if value.contains(char::REPLACEMENT_CHARACTER) {
                return Err(Invalid::new(name, "must be valid UTF-8"));
            }
            if place.replace(value.into_owned()).is_some() {
                return Err(Invalid::new(name, "must not be given twice"));
            }
        }
        Ok(parameters)
    }
}

fn parse(query: &str) -> Result<ListQuery, Invalid> {
    let given = Parameters::read(query)?;
    let status = given.status.map(|text| {
        Status::parse(&text).ok_or_else(|| Invalid::new("status", "must be pending, executing, completed, failed or canceled"))
    });
    let sort = match given.sort.as_deref() {
        None | Some("created_at") => Sort::CreatedAt,
        Some("execute_at") => Sort::ExecuteAt,
        Some(_) => return Err(Invalid::new("sort", "must be created_at or execute_at")),
    };
    let order = match given.order.as_deref() {
        None | Some("desc") => Order::Descending,
        Some("asc") => Order::Ascending,
        Some(_) => return Err(Invalid::new("order", "must be asc or desc")),
    };
    let limit = whole("limit", given.limit, 1, limits::PAGE_TIMERS_MAX.into())?;
    Ok(ListQuery {
        filter: Filter {
            status: status.transpose()?,
            namespace: given.namespace.map(|text| Namespace::parse(&text)).transpose()?,
            key_prefix: None,
        },
        sort,
        order,
        limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(limits::PAGE_TIMERS_DEFAULT),
        offset: whole("offset", given.offset, 0, OFFSET_MAX)?.unwrap_or(0),
        after: given.cursor.map(|token| cursor::read(&token, sort, order)).transpose()?,
    })
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
