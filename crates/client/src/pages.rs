//! Lists, page by page and as streams.

use std::collections::VecDeque;

use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};

use crate::{Client, Error, Filter, Json, Request, Timer};

/// Which page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageQuery {
    pub filter: Filter,
    /// `created_at` or `execute_at`.
    pub sort: Option<String>,
    /// `asc` or `desc`.
    pub order: Option<String>,
    /// At most 200.
    pub limit: Option<u32>,
    /// How many are left out in front, for a list with numbered pages. A cursor is faster, and misses nothing.
    pub offset: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// One page of a list, its timers exactly as the service sent them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Page {
    pub timers: Vec<Json>,
    pub total: u64,
    pub total_is_estimate: bool,
    pub limit: u32,
    pub offset: u32,
    pub next_cursor: Option<String>,
    /// How many timers were looked at.
    pub scanned: u64,
    /// Whether the search had time enough. Go on with `next_cursor` either way.
    pub complete: bool,
}

impl From<Filter> for PageQuery {
    fn from(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }
}

impl Page {
    pub fn timers(&self) -> Result<Vec<Timer>, Error> {
        self.timers.iter().map(Json::parse).collect()
    }
}

pub(crate) async fn page(client: &Client, query: &PageQuery) -> Result<Page, Error> {
    let PageQuery { filter, sort, order, limit, offset, cursor } = query;
    let parameters = filter.query().with_some("sort", sort.clone()).with_some("order", order.clone());
    let parameters = parameters.with_some("limit", limit.map(|limit| limit.to_string())).with_some("cursor", cursor.clone());
    let parameters = parameters.with_some("offset", offset.map(|offset| offset.to_string()));
    client.call(&Request::get(parameters.on("/timers"))).await?.data.parse()
}

/// Every timer that matches, read by cursor: each as the service sent it.
pub(crate) fn raw(client: &Client, query: PageQuery) -> impl Stream<Item = Result<Json, Error>> + Send + use<> {
    struct Reading {
        client: Client,
        query: PageQuery,
        read: VecDeque<Json>,
        is_last: bool,
    }
    let reading = Reading { client: client.clone(), query, read: VecDeque::new(), is_last: false };
    stream::try_unfold(reading, async |mut reading: Reading| {
        loop {
            if let Some(timer) = reading.read.pop_front() {
                return Ok(Some((timer, reading)));
            }
            if reading.is_last {
                return Ok(None);
            }
            let page = page(&reading.client, &reading.query).await?;
            reading.is_last = page.next_cursor.is_none();
            reading.query.cursor = page.next_cursor;
            reading.read = page.timers.into();
        }
    })
}
