//! `/console/live`: regions of a page, sent again when they have changed.
//!
//! Each view is rendered once a second, however many look at it: viewers with the same key share one poll. A viewer that is gone, logged
//! out or whose key was revoked ends its stream; the last one ends the poll.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::AccessKeyId;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use maud::{Markup, Render};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    fields::{self, Fields},
    guard, known_health, pages,
    problem::Problem,
    region::Region,
    session::Holder,
    visitor::Visitor,
};

/// How often a view is rendered. One that takes long is rendered less often, so that no view takes more than a twentieth of the time. The
/// pause has an end: on a busy machine a view takes long because it waits, and its viewers should not wait twenty times as long.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const PAUSE_FACTOR: u32 = 20;
/// How often the session of a stream is looked at again, whatever the stream sends meanwhile.
const CHECK_PAUSE: Duration = Duration::from_secs(1);
/// How often a stream shows that it is alive.
const COMMENT_AFTER: Duration = Duration::from_secs(10);
const STREAMS_MAX: usize = 256;
const STREAMS_OF_A_KEY_MAX: usize = 128;

/// The views that are looked at, and how many streams each key has.
#[derive(Default)]
pub(crate) struct Live(Mutex<State>);

#[derive(Default)]
struct State {
    views: HashMap<View, watch::Receiver<Snapshot>>,
    /// `None` is the administrator's.
    streams: HashMap<Option<AccessKeyId>, usize>,
}

/// What is looked at, and through which eyes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct View {
    key: Option<AccessKeyId>,
    origin: String,
    /// The path behind `/console`, with its query.
    page: String,
}

/// The regions as they were rendered last, and whether they are still true.
#[derive(Debug, Clone, Default)]
struct Snapshot {
    regions: Arc<Vec<Arc<Rendered>>>,
    state: ViewState,
}

/// A region, and the frame that carries it to every viewer.
#[derive(Debug)]
struct Rendered {
    id: &'static str,
    html: String,
    frame: String,
}

impl Rendered {
    /// The same as before, where nothing has changed: a viewer that was sent it needs no more than the pointer to see that.
    fn of(id: &'static str, markup: Markup, before: &[Arc<Self>]) -> Arc<Self> {
        let html = markup.into_string();
        let same = before.iter().find(|before| before.id == id && before.html == html);
        same.cloned().unwrap_or_else(|| {
            let frame = format!("event: region\ndata: {}\n\n", json!({"id": id, "html": html}));
            Arc::new(Self { id, html, frame })
        })
    }

    fn is(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || (self.id == other.id && self.html == other.html)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ViewState {
    #[default]
    Present,
    /// The store does not answer: the regions are from before.
    StoreAway,
    /// The page is no more.
    Gone,
}

impl Live {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permit of one stream.
struct Permit {
    visitor: Visitor,
}

impl Permit {
    fn take(visitor: &Visitor) -> Option<Self> {
        let mut state = visitor.shared.live.state();
        let key = visitor.commands.caller.key_id();
        let all: usize = state.streams.values().sum();
        let own = state.streams.entry(key).or_default();
        if all >= STREAMS_MAX || *own >= STREAMS_OF_A_KEY_MAX {
            return None;
        }
        *own += 1;
        Some(Self { visitor: visitor.clone() })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.visitor.shared.live.state();
        let key = self.visitor.commands.caller.key_id();
        if let Some(own) = state.streams.get_mut(&key) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                state.streams.remove(&key);
            }
        }
    }
}

/// `GET /console/live?view=…`.
pub(crate) async fn follow(visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    let page = fields.get("view").unwrap_or_default().to_owned();
    let Some(permit) = Permit::take(&visitor) else {
        return Ok((StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "10")]).into_response());
    };
    let view = View { key: visitor.commands.caller.key_id(), origin: visitor.origin.clone(), page };
    let feed = Feed {
        permit,
        snapshots: subscribe(&visitor, view),
        sent: HashMap::new(),
        is_away: false,
        is_new: true,
        check_at: Instant::now() + CHECK_PAUSE,
        comment_at: Instant::now(),
        is_over: false,
    };
    let stop = visitor.shared.config.stop.clone();
    let frames = stream::unfold(feed, move |mut feed| {
        let stop = stop.clone();
        async move {
            let frame: Bytes = stop.run_until_cancelled(feed.next()).await.flatten()?;
            Some((Ok::<_, Infallible>(frame), feed))
        }
    });
    let mut response = Body::from_stream(frames).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The snapshots of a view, by the poll that there is, or by a new one.
fn subscribe(visitor: &Visitor, view: View) -> watch::Receiver<Snapshot> {
    let mut state = visitor.shared.live.state();
    if let Some(snapshots) = state.views.get(&view) {
        return snapshots.clone();
    }
    let (sender, receiver) = watch::channel(Snapshot::default());
    state.views.insert(view.clone(), receiver.clone());
    let visitor = Visitor { is_live: true, ..visitor.clone() };
    tokio::spawn(async move {
        let stop = visitor.shared.config.stop.clone();
        stop.run_until_cancelled(poll(&visitor, &view, &sender)).await;
    });
    receiver
}

/// Renders a view until no stream follows it.
async fn poll(visitor: &Visitor, view: &View, sender: &watch::Sender<Snapshot>) {
    loop {
        let began = Instant::now();
        let before = Arc::clone(&sender.borrow().regions);
        let (read, is_database_away) = tokio::join!(regions(visitor, &view.page), known_health::is_database_away(visitor));
        match read {
            Ok(regions) => {
                let mut rendered: Vec<_> =
                    regions.iter().map(|region| Rendered::of(region.id, region.render(), &before)).collect();
                rendered.push(dot(visitor, is_database_away, &before));
                show(sender, rendered, ViewState::Present);
            }
            Err(problem) if problem.status() == StatusCode::NOT_FOUND => show(sender, before.to_vec(), ViewState::Gone),
            // The regions stay as they were, and the dot does not.
            Err(problem) if problem.status() == StatusCode::SERVICE_UNAVAILABLE => {
                let regions = before.iter().filter(|region| region.id != known_health::DOT).cloned();
                let rendered = regions.chain([dot(visitor, true, &before)]).collect();
                show(sender, rendered, ViewState::StoreAway);
            }
            Err(problem) => tracing::debug!(?problem, "a view of the console cannot be rendered at the moment"),
        }
        sleep((began.elapsed() * PAUSE_FACTOR).clamp(PAUSE, PAUSE_MAX)).await;
        let mut state = visitor.shared.live.state();
        // The state holds one receiver. New streams come under its lock.
        if sender.receiver_count() <= 1 {
            state.views.remove(view);
            return;
        }
    }
}

/// The dot of the bar, which is on every page.
fn dot(visitor: &Visitor, is_database_away: bool, before: &[Arc<Rendered>]) -> Arc<Rendered> {
    Rendered::of(known_health::DOT, known_health::dot(visitor, is_database_away), before)
}

/// Wakes the viewers if anything is other than before.
fn show(sender: &watch::Sender<Snapshot>, regions: Vec<Arc<Rendered>>, state: ViewState) {
    sender.send_if_modified(|snapshot| {
        let before = &snapshot.regions;
        let is_same = regions.len() == before.len() && regions.iter().zip(before.iter()).all(|(one, other)| one.is(other));
        let is_other = snapshot.state != state || !is_same;
        if is_other {
            *snapshot = Snapshot { regions: Arc::new(regions), state };
        }
        is_other
    });
}

/// What changes on a page while it is looked at.
async fn regions(visitor: &Visitor, page: &str) -> Result<Vec<Region>, Problem> {
    let (path, query) = page.split_once('?').unwrap_or((page, ""));
    let fields = Fields::parse(query.as_bytes());
    match path.trim_end_matches('/') {
        "" => pages::overview::regions(visitor, &fields).await,
        "/timers" => pages::timers::regions(visitor, &fields).await,
        "/failed" => pages::failed::regions(visitor).await,
        "/operations" => pages::operations::regions(visitor).await,
        "/destinations" => pages::destinations::regions(visitor).await,
        "/namespaces" => pages::namespaces::regions(visitor).await,
        "/cluster" => pages::cluster::regions(visitor).await,
        "/inbox" => pages::inbox::regions(visitor, &fields).await,
        path => match (path.strip_prefix("/timers/"), path.strip_prefix("/operations/")) {
            (Some(id), _) => pages::timer::regions(visitor, id).await,
            (_, Some(id)) => pages::operations::regions_of_one(visitor, id).await,
            _ => match path.strip_prefix("/destinations/") {
                Some(name) => pages::destinations::regions_of_one(visitor, &fields::decoded(name)).await,
                None => Err(Problem::NoSuchPage),
            },
        },
    }
}

/// What one viewer is sent, a frame at a time.
struct Feed {
    permit: Permit,
    snapshots: watch::Receiver<Snapshot>,
    /// The regions as this viewer has them.
    sent: HashMap<&'static str, Arc<Rendered>>,
    /// Whether this viewer knows that the store does not answer.
    is_away: bool,
    is_new: bool,
    /// When the session is looked at again.
    check_at: Instant,
    /// When the viewer was last sent something.
    comment_at: Instant,
    is_over: bool,
}

impl Feed {
    /// The next frame; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over {
                return None;
            }
            if Instant::now() >= self.check_at {
                if !self.is_still_logged_in().await {
                    return Some(self.ended());
                }
                self.check_at = Instant::now() + CHECK_PAUSE;
            }
            if std::mem::take(&mut self.is_new) {
                // A viewer that comes later is shown what there is.
                self.snapshots.mark_changed();
                return Some(Bytes::from_static(b"retry: 2000\n: live\n\n"));
            }
            match timeout_at(self.check_at, self.snapshots.changed()).await {
                Ok(Ok(())) => {
                    let frame = self.changes();
                    if !frame.is_empty() {
                        self.comment_at = Instant::now();
                        return Some(frame.into());
                    }
                }
                // The poll has ended.
                Ok(Err(_)) => return None,
                Err(_) => {}
            }
            if self.comment_at.elapsed() >= COMMENT_AFTER {
                self.comment_at = Instant::now();
                return Some(Bytes::from_static(b": live\n\n"));
            }
        }
    }

    fn changes(&mut self) -> String {
        let Snapshot { regions, state } = self.snapshots.borrow_and_update().clone();
        if state == ViewState::Gone {
            self.is_over = true;
            return GONE.to_owned();
        }
        let is_away = state == ViewState::StoreAway;
        let mut frames = match (std::mem::replace(&mut self.is_away, is_away), is_away) {
            (false, true) => AWAY.to_owned(),
            (true, false) => BACK.to_owned(),
            _ => String::new(),
        };
        for region in regions.iter() {
            if !self.sent.get(region.id).is_some_and(|sent| sent.is(region)) {
                frames.push_str(&region.frame);
                self.sent.insert(region.id, Arc::clone(region));
            }
        }
        frames
    }

    fn ended(&mut self) -> Bytes {
        self.is_over = true;
        Bytes::from_static(GONE.as_bytes())
    }

    /// Whether the cookie has not run out and its key was not revoked meanwhile. A store that does not answer ends no stream.
    async fn is_still_logged_in(&self) -> bool {
        let visitor = &self.permit.visitor;
        if visitor.shared.config.clock.now() >= visitor.session_ends_at {
            return false;
        }
        let Some(id) = visitor.commands.caller.key_id() else { return true };
        !matches!(guard::caller(&visitor.shared, Holder::Key(id)).await, Ok(None))
    }
}

const GONE: &str = "event: gone\ndata: {}\n\n";
const AWAY: &str = "event: away\ndata: {}\n\n";
const BACK: &str = "event: back\ndata: {}\n\n";

#[cfg(test)]
mod tests;
