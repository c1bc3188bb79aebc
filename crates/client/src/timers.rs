use std::time::Duration;

use futures_util::{Stream, StreamExt};
use http::{Method, header};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Answer, Attempt, Client, Error, Filter, Json, NewTimer, Page, PageQuery, Request, Timer, TimerDetail, TimerRef, pages,
};

/// The calls about timers.
#[derive(Debug, Clone, Copy)]
pub struct Timers<'a>(pub(crate) &'a Client);

/// A change of one timer: the members of the request, and the revision that it is made from, if that matters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Update {
    /// As `PUT /timers/{id}` takes them.
    pub fields: Value,
    pub if_revision: Option<u32>,
}

/// What became of one timer of a batch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct BatchResult {
    pub status: u16,
    pub message: String,
    pub field: Option<String>,
    pub timer: Option<Timer>,
}

/// A change of every timer that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Bulk {
    /// `cancel`, `fire`, `retry`, `reschedule`, `pause`, `resume`, `expire` or `delete`.
    pub action: String,
    pub filter: Filter,
    /// The new due times, for `reschedule`: `{"shift": "+1h"}`.
    pub set: Option<Value>,
}

/// What a bulk change did, or began.
#[derive(Debug, Clone, PartialEq)]
pub enum Bulked {
    Done {
        changed: u64,
        skipped: u64,
    },
    /// It goes on in the background, under this id.
    Operation {
        id: String,
    },
}

#[derive(Deserialize)]
struct AttemptList {
    attempts: Vec<Attempt>,
}

impl Timers<'_> {
    /// Registers a timer. Repeating it is safe, so that it is repeated where no answer came.
    pub async fn create(&self, timer: &NewTimer) -> Result<Timer, Error> {
        self.create_raw(&timer.body()?).await?.data.parse()
    }

    /// Registers what the text says, which must have an id or a key.
    pub async fn create_raw(&self, body: &Json) -> Result<Answer, Error> {
        self.0.call(&Request::post("/timers").json(body.to_string()).repeatable()).await
    }

    /// Registers up to 1,000 timers at once; what became of each, in their order.
    pub async fn create_many(&self, timers: &[NewTimer]) -> Result<Vec<BatchResult>, Error> {
        let bodies: Vec<Json> = timers.iter().map(NewTimer::body).collect::<Result<_, _>>()?;
        self.create_many_raw(&bodies).await
    }

    /// Registers what the texts say, which must each have an id or a key.
    pub async fn create_many_raw(&self, bodies: &[Json]) -> Result<Vec<BatchResult>, Error> {
        self.create_batch(bodies, |request| request).await
    }

    /// The same with another deadline than that of the client.
    pub async fn create_many_within(&self, bodies: &[Json], timeout: Duration) -> Result<Vec<BatchResult>, Error> {
        self.create_batch(bodies, |request| request.timeout(timeout)).await
    }

    async fn create_batch(&self, bodies: &[Json], with: impl FnOnce(Request) -> Request) -> Result<Vec<BatchResult>, Error> {
        #[derive(Deserialize)]
        struct Results {
            results: Vec<BatchResult>,
        }
        let body = Json::of(&json_object("timers", bodies)?)?;
        let request = Request::post("/timers/batch").json(body.to_string()).repeatable();
        Ok(self.0.call(&with(request)).await?.data.parse::<Results>()?.results)
    }

    pub async fn get(&self, timer: impl Into<TimerRef>) -> Result<TimerDetail, Error> {
        TimerDetail::of(&self.get_raw(timer).await?)
    }

    /// The timer as the service sent it.
    pub async fn get_raw(&self, timer: impl Into<TimerRef>) -> Result<Json, Error> {
        Ok(self.0.call(&Request::get(timer.into().path())).await?.data)
    }

    /// Every timer that matches, read by cursor.
    pub fn list(&self, query: PageQuery) -> impl Stream<Item = Result<Timer, Error>> + Send + use<> {
        self.list_raw(query).map(|timer| timer?.parse())
    }

    /// The same, each timer as the service sent it.
    pub fn list_raw(&self, query: PageQuery) -> impl Stream<Item = Result<Json, Error>> + Send + use<> {
        pages::raw(self.0, query)
    }

    pub async fn page(&self, query: &PageQuery) -> Result<Page, Error> {
        pages::page(self.0, query).await
    }

    /// How many match, and whether that is an estimate.
    pub async fn count(&self, filter: &Filter) -> Result<(u64, bool), Error> {
        #[derive(Deserialize)]
        struct Count {
            total: u64,
            total_is_estimate: bool,
        }
        let Count { total, total_is_estimate } =
            self.0.call(&Request::get(filter.query().on("/timers/count"))).await?.data.parse()?;
        Ok((total, total_is_estimate))
    }

    pub async fn update(&self, timer: impl Into<TimerRef>, update: &Update) -> Result<Timer, Error> {
        self.update_raw(timer, update).await?.parse()
    }

    /// The changed timer as the service sent it.
    pub async fn update_raw(&self, timer: impl Into<TimerRef>, update: &Update) -> Result<Json, Error> {
        let request = Request::new(Method::PUT, timer.into().path()).json(update.fields.to_string());
        Ok(self.0.call(&if_match(request, update.if_revision)).await?.data)
    }

    /// `cancel`, `fire`, `retry`, `ping`, `pause` or `resume`; the timer as the service sent it.
    pub async fn act_raw(&self, timer: impl Into<TimerRef>, action: &str) -> Result<Json, Error> {
        let path = timer.into().path();
        let request = match action {
            "cancel" => Request::new(Method::DELETE, path),
            action => Request::post(format!("{path}/{action}")),
        };
        Ok(self.0.call(&request).await?.data)
    }

    pub async fn cancel(&self, timer: impl Into<TimerRef>) -> Result<Timer, Error> {
        self.0.call(&Request::new(Method::DELETE, timer.into().path())).await?.data.parse()
    }

    /// Makes a pending timer due now. Never repeated: it might fire twice.
    pub async fn fire(&self, timer: impl Into<TimerRef>) -> Result<Timer, Error> {
        self.act(timer, "fire", None).await
    }

    /// Tries a failed or expired timer again.
    pub async fn retry(&self, timer: impl Into<TimerRef>) -> Result<Timer, Error> {
        self.act(timer, "retry", None).await
    }

    /// Postpones it by its own delay, or the one given.
    pub async fn ping(&self, timer: impl Into<TimerRef>, delay: Option<&str>) -> Result<Timer, Error> {
        self.act(timer, "ping", delay.map(|delay| json!({"delay": delay}))).await
    }

    pub async fn pause(&self, timer: impl Into<TimerRef>, note: Option<&str>) -> Result<Timer, Error> {
        self.act(timer, "pause", note.map(|note| json!({"note": note}))).await
    }

    /// `missed` says what becomes of one that was due meanwhile: `fire` or `expire`.
    pub async fn resume(&self, timer: impl Into<TimerRef>, missed: Option<&str>) -> Result<Timer, Error> {
        self.act(timer, "resume", missed.map(|missed| json!({"missed": missed}))).await
    }

    async fn act(&self, timer: impl Into<TimerRef>, action: &str, body: Option<Value>) -> Result<Timer, Error> {
        let request = Request::post(format!("{}/{action}", timer.into().path()));
        let request = match body {
            Some(body) => request.json(body.to_string()),
            None => request,
        };
        self.0.call(&request).await?.data.parse()
    }

    pub async fn attempts(&self, timer: impl Into<TimerRef>) -> Result<Vec<Attempt>, Error> {
        Ok(self.attempts_raw(timer).await?.parse::<AttemptList>()?.attempts)
    }

    pub async fn attempts_raw(&self, timer: impl Into<TimerRef>) -> Result<Json, Error> {
        Ok(self.0.call(&Request::get(format!("{}/attempts", timer.into().path()))).await?.data)
    }

    /// Counts what a bulk change would meet: `matched`, `matched_is_estimate`, `by_status` and `examples`.
    pub async fn bulk_preview(&self, bulk: &Bulk) -> Result<Value, Error> {
        let mut body = bulk_body(bulk);
        body["dry_run"] = true.into();
        self.0.call(&Request::post("/timers/bulk").json(body.to_string()).repeatable()).await?.data.parse()
    }

    /// Changes everything that matches, unless that is more than `expected_max`.
    pub async fn bulk(&self, bulk: &Bulk, expected_max: u64) -> Result<Bulked, Error> {
        #[derive(Deserialize)]
        struct Changed {
            changed: Option<u64>,
            skipped: Option<u64>,
            operation: Option<Operation>,
        }
        #[derive(Deserialize)]
        struct Operation {
            id: String,
        }
        let mut body = bulk_body(bulk);
        body["expected_max"] = expected_max.into();
        let Changed { changed, skipped, operation } =
            self.0.call(&Request::post("/timers/bulk").json(body.to_string())).await?.data.parse()?;
        Ok(match operation {
            Some(Operation { id }) => Bulked::Operation { id },
            None => Bulked::Done { changed: changed.unwrap_or_default(), skipped: skipped.unwrap_or_default() },
        })
    }
}

fn bulk_body(bulk: &Bulk) -> Value {
    let mut body = json!({"action": bulk.action, "filter": bulk.filter.object()});
    if let Some(set) = &bulk.set {
        body["set"] = set.clone();
    }
    body
}

fn json_object(name: &str, values: &[Json]) -> Result<Json, Error> {
    Json::text(format!("{{{}:{}}}", Json::of(name)?, Json::of(values)?))
}

fn if_match(request: Request, revision: Option<u32>) -> Request {
    match revision {
        Some(revision) => request.header(header::IF_MATCH, format!("\"{revision}\"")),
        None => request,
    }
}
