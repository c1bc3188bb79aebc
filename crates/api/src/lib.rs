//! The REST dialects: JSON in, JSON out, whatever happens. The native one answers in one envelope; the namespaced one, `v1`, has words
//! of its own for the same use cases.
//!
//! ```text
//!   socket ──▶ listener ──▶ observe ──▶ auth ──▶ one file per endpoint ──▶ commands
//!              (time and    (request id,         (parse, call one
//!               size limits, metrics, log,        command, map the answer)
//!               strict heads) words of refusal)
//! ```
//!
//! [`router`] is the whole API as a service; [`serve`] puts it on a listener with the limits that axum's own `serve` does not set.

mod attempts;
mod auth;
mod base_path;
mod batch;
mod body;
mod bulk;
mod by_key;
mod cancel;
mod cancel_matching;
mod cluster;
mod compression;
mod console;
mod count;
mod create;
mod cursor;
mod destinations;
mod dev;
mod dialect;
mod docs;
mod envelope;
mod error;
mod etag;
mod events;
mod export;
mod filter;
mod fire;
mod get;
mod groups;
mod health;
mod id;
mod keys;
mod limits;
mod list;
mod listener;
mod metrics;
mod namespaces;
mod observe;
mod openapi;
mod operations;
mod page;
mod pause;
mod ping;
mod ping_timer;
mod rate;
mod request;
mod request_metrics;
mod retry;
mod revision;
mod schema;
mod stats;
mod timer_text;
mod timing;
mod trace;
mod update;
mod v1;
mod view;
mod whoami;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, LazyLock},
};

use axum::{Router, middleware, routing};
use commands::{Commands, KeyRing};
use domain::{Caller, Tracer};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub use auth::ApiKey;
pub use base_path::BasePath;
pub use docs::BookUrl;
pub use export::Exporter;
pub use health::{HealthItem, Reading};
pub use limits::{BATCH_BYTES_MAX, BODY_BYTES_MAX, Limits, PAGE_TIMERS_DEFAULT, PAGE_TIMERS_MAX, RESERVED_CONNECTIONS_MAX};
#[cfg(fuzzing)]
pub use listener::check_head;
pub use listener::serve;
pub use metrics::METRICS;
pub use rate::{RateLimit, Rates};
pub use timer_text::{read_new_timer, read_patch};

use commands::Permits;
use page::Page;
use rate::WrongKeys;
use request_metrics::RequestMetrics;

/// What the server brings.
#[derive(Clone)]
pub struct ApiConfig {
    pub api_key: ApiKey,
    /// Under which path everything is served.
    pub base_path: BasePath,
    /// Where the book is, for a link.
    pub book_url: Option<BookUrl>,
    /// How often each key may ask.
    pub rates: Rates,
    pub limits: Limits,
    /// What `/healthz` tells beside the database.
    pub health: Vec<HealthItem>,
    /// Gives the text of `/metrics`.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Where requests are traced.
    pub tracer: Option<Arc<dyn Tracer>>,
    /// What only `timer dev` has.
    pub dev: Option<::dev::DevTools>,
    /// Pages under `/console`, if they are served. They log their viewers in by themselves.
    pub console: Option<Router>,
}

impl fmt::Debug for ApiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_key, base_path, book_url, rates, limits, health, metrics: _, tracer: _, dev, console: _ } = self;
        f.debug_struct("ApiConfig")
            .field("api_key", api_key)
            .field("base_path", base_path)
            .field("book_url", book_url)
            .field("rates", rates)
            .field("limits", limits)
            .field("health", health)
            .field("dev", dev)
            .finish_non_exhaustive()
    }
}

/// What every handler can reach: one thing to share, because every request takes it along several times.
pub(crate) type Api = Arc<Shared>;

/// Handlers that act on behalf of a client have [`auth::Permitted`].
pub(crate) struct Shared {
    /// On behalf of the administrator.
    unrestricted: Arc<Commands>,
    keyring: Arc<KeyRing>,
    wrong_keys: WrongKeys,
    config: ApiConfig,
    /// Made when the first of them is asked for: a service that starts has more urgent work.
    pages: LazyLock<Pages, Box<dyn FnOnce() -> Pages + Send>>,
    request_metrics: RequestMetrics,
    /// One permit for each batch that may be in memory.
    batches: Permits,
    /// One for each large body that may be.
    large_bodies: Permits,
    exporter: Exporter,
}

/// The connection that a request came over.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    /// The address of the client. All clients behind one proxy have that of the proxy.
    pub address: IpAddr,
    /// The shutdown of the listener: an answer that would never end ends then.
    pub stopping: CancellationToken,
}

/// One client, as far as an address tells: the owner of an IPv6 network has all addresses of it.
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

/// What is written once and served often.
struct Pages {
    openapi: Page,
    docs: Page,
    docs_policy: String,
}

impl Pages {
    fn new(base_path: &BasePath, book_url: Option<&BookUrl>) -> Self {
        let document = openapi::document_under(base_path);
        Self {
            docs: Page::new(docs::page::render(&document, book_url)),
            docs_policy: docs::page::policy(),
            openapi: Page::new(document.to_string()),
        }
    }
}

/// The whole API. It shares the keyring with all that log clients in, so that a key that is revoked in one place is unknown to all at once.
pub fn router(config: ApiConfig, commands: Commands, keyring: Arc<KeyRing>) -> Router {
    let base_path = config.base_path.clone();
    let (path_of_pages, book_url) = (base_path.clone(), config.book_url.clone());
    let api = Arc::new(Shared {
        keyring,
        wrong_keys: WrongKeys::new(),
        unrestricted: Arc::new(commands.on_behalf_of(Caller::Administrator)),
        pages: LazyLock::new(Box::new(move || Pages::new(&path_of_pages, book_url.as_ref()))),
        config,
        request_metrics: RequestMetrics::default(),
        batches: Permits::new(limits::BATCHES_AT_ONCE_MAX),
        large_bodies: Permits::new(limits::LARGE_BODIES_AT_ONCE_MAX),
        exporter: Exporter::default(),
    });
    let documented_under = base_path.clone();
    let routes = Router::new()
        .route("/timers", routing::post(create::create).get(list::list))
        .route("/timers/count", routing::get(count::count))
        .route("/timers.csv", routing::get(export::csv))
        .route("/timers.json", routing::get(export::json))
        .route("/timers.ndjson", routing::get(export::ndjson))
        .route("/timers/{id}", routing::get(get::get).put(update::update).delete(cancel::cancel))
        .route("/timers/{id}/fire", routing::post(fire::fire))
        .route("/timers/{id}/retry", routing::post(retry::retry))
        .route("/timers/{id}/ping", routing::post(ping_timer::ping_timer))
        .route("/timers/{id}/pause", routing::post(pause::pause))
        .route("/timers/{id}/resume", routing::post(pause::resume))
        .route("/timers/{id}/attempts", routing::get(attempts::attempts))
        .route("/timers/batch", routing::post(batch::batch))
        .route("/timers/bulk", routing::post(bulk::bulk))
        .route("/operations", routing::get(operations::list))
        .route("/operations/{id}", routing::get(operations::get).delete(operations::stop))
        .route("/timers/cancel", routing::post(cancel_matching::cancel_matching))
        .route("/events", routing::get(events::events))
        .route("/groups/{namespace}/{group}", routing::get(groups::count).delete(groups::cancel))
        .route("/keys", routing::post(keys::create::create).get(keys::list::list))
        .route("/keys/{id}", routing::delete(keys::revoke::revoke))
        .route("/stats/due", routing::get(stats::due::due))
        .route("/stats/fired", routing::get(stats::fired::fired))
        .route("/destinations", routing::get(destinations::destinations))
        .route("/namespaces", routing::get(namespaces::namespaces))
        .route("/cluster", routing::get(cluster::cluster))
        .route("/whoami", routing::get(whoami::whoami))
        .route("/healthz", routing::get(health::health))
        .route("/ping", routing::get(ping::ping))
        .route("/metrics", routing::get(metrics::metrics))
        .route("/openapi.json", routing::get(openapi::describe))
        .route("/docs", routing::get(docs::docs))
        .merge(by_key::routes())
        .merge(v1::routes())
        .merge(dev::routes(api.config.dev.as_ref()))
        .fallback(async move || error::ApiError::NoSuchRoute(documented_under))
        .method_not_allowed_fallback(async || error::ApiError::MethodNotAllowed)
        .with_state(api.clone());
    let routes = console::mounted(routes, &api).layer(middleware::from_fn_with_state(api, observe::around));
    if base_path == BasePath::default() {
        return routes;
    }
    Router::new().fallback_service(routes.map_request(move |request| base_path.strip(request)))
}
