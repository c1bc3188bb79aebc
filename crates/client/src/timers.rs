use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use http::Method;
use http_body_util::BodyDataStream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Answer, Attempt, Client, Error, Filter, Json, NewTimer, Page, PageQuery, Request, Timer, TimerDetail, TimerRef, Update,
    duration, pages,
};

/// The calls about timers.
#[derive(Debug, Clone, Copy)]
pub struct Timers<'a> {
    pub(crate) client: &'a Client,
    pub(crate) revision: Option<u32>,
}

/// What became of one timer of a batch: the status and the message that it would have had alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchResult {
    pub status: u16,
    pub message: String,
    pub field: Option<String>,
    pub timer: Option<Timer>,
}

/// How many timers match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Count {
    pub total: u64,
    pub total_is_estimate: bool,
}

#[derive(Deserialize)]
struct AttemptList {
    attempts: Vec<Attempt>,
}

impl Timers<'_> {
    /// The same calls for a timer of this revision: [`Timers::update`], [`Timers::cancel`] and the others that change one timer are refused
    /// as a conflict if it has another. They are not repeated then.
    #[must_use]
    pub const fn if_revision(mut self, revision: u32) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Registers a timer. Repeating it is safe, so that it is repeated where no answer came.
    pub async fn create(&self, timer: &NewTimer) -> Result<Timer, Error> {
        self.create_raw(&timer.body()?).await?.data.parse()
    }

    /// Registers what the text says, which must have an id or a key.
    pub async fn create_raw(&self, body: &Json) -> Result<Answer, Error> {
        self.client.call(&Request::post("/timers").json(body.to_string()).repeatable().traced()).await
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
        let request = Request::post("/timers/batch").json(body.to_string()).repeatable().traced();
        Ok(self.client.call(&with(request)).await?.data.parse::<Results>()?.results)
    }

    pub async fn get(&self, timer: impl Into<TimerRef>) -> Result<TimerDetail, Error> {
        TimerDetail::of(&self.get_raw(timer).await?)
    }

    /// The timer as the service sent it.
    pub async fn get_raw(&self, timer: impl Into<TimerRef>) -> Result<Json, Error> {
        Ok(self.client.call(&Request::get(timer.into().path())).await?.data)
    }

    /// Every timer that matches, read by cursor.
    pub fn list(&self, query: PageQuery) -> impl Stream<Item = Result<Timer, Error>> + Send + use<> {
        self.list_raw(query).map(|timer| timer?.parse())
    }

    /// The same, each timer as the service sent it.
    pub fn list_raw(&self, query: PageQuery) -> impl Stream<Item = Result<Json, Error>> + Send + use<> {
        pages::raw(self.client, query)
    }

    pub async fn page(&self, query: &PageQuery) -> Result<Page, Error> {
        pages::page(self.client, query).await
    }

    /// Counts the timers that match.
    pub async fn count(&self, filter: &Filter) -> Result<Count, Error> {
        self.client.call(&Request::get(filter.query().on("/timers/count"))).await?.data.parse()
    }

    /// Every timer that matches, as the service writes it: `csv`, `json` or `ndjson`, in parts as they come. Payloads are not part of it.
    pub async fn export(&self, filter: &Filter, format: &str) -> Result<impl Stream<Item = Result<Bytes, Error>> + use<>, Error> {
        let body = self.client.stream(&Request::get(filter.query().on(&format!("/timers.{format}")))).await?;
        let url = self.client.url().to_owned();
        Ok(BodyDataStream::new(body).map_err(move |error| Error::Unreachable { url: url.clone(), cause: error.to_string() }))
    }

    pub async fn update(&self, timer: impl Into<TimerRef>, update: &Update) -> Result<Timer, Error> {
        self.update_raw(timer, &update.body()).await?.parse()
    }

    /// Changes what the text says; the changed timer as the service sent it.
    pub async fn update_raw(&self, timer: impl Into<TimerRef>, body: &Json) -> Result<Json, Error> {
        self.change(Request::new(Method::PUT, timer.into().path()).json(body.to_string())).await
    }

    /// `cancel`, `fire`, `retry`, `ping`, `pause` or `resume`; the timer as the service sent it.
    pub async fn act_raw(&self, timer: impl Into<TimerRef>, action: &str) -> Result<Json, Error> {
        let path = timer.into().path();
        self.change(match action {
            "cancel" => Request::new(Method::DELETE, path),
            action => Request::post(format!("{path}/{action}")),
        })
        .await
    }

    /// Cancels a pending or paused timer; once this has returned, it never fires.
    pub async fn cancel(&self, timer: impl Into<TimerRef>) -> Result<Timer, Error> {
        self.act_raw(timer, "cancel").await?.parse()
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
    pub async fn ping(&self, timer: impl Into<TimerRef>, delay: Option<Duration>) -> Result<Timer, Error> {
        self.act(timer, "ping", delay.map(|delay| json!({"delay": duration(delay)}))).await
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
        self.change(request).await?.parse()
    }

    async fn change(&self, request: Request) -> Result<Json, Error> {
        let request = match self.revision {
            Some(revision) => request.if_revision(revision),
            None => request,
        };
        Ok(self.client.call(&request).await?.data)
    }

    pub async fn attempts(&self, timer: impl Into<TimerRef>) -> Result<Vec<Attempt>, Error> {
        Ok(self.attempts_raw(timer).await?.parse::<AttemptList>()?.attempts)
    }

    pub async fn attempts_raw(&self, timer: impl Into<TimerRef>) -> Result<Json, Error> {
        Ok(self.client.call(&Request::get(format!("{}/attempts", timer.into().path()))).await?.data)
    }
}

fn json_object(name: &str, values: &[Json]) -> Result<Json, Error> {
    Json::text(format!("{{{}:{}}}", Json::of(name)?, Json::of(values)?))
}
