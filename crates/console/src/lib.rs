//! The web console: pages that the server renders, over the same use cases as every API.
//!
//! ```text
//!   request ──▶ guard ──▶ session ──▶ one file per page ──▶ commands
//!               (origin,  (cookie,    (parse, ask,
//!                headers)  keyring)    render)
//!                                        ▲
//!   /console/live ──▶ one poll a second for each view, shared by its viewers
//! ```
//!
//! The console has no powers of its own: a page acts on behalf of the key that its viewer has logged in with, and what that key may do
//! is decided by the commands. Every action is a form and every state a URL, so that all of it works without script; the script adds
//! live regions, countdowns, dialogs and shortcuts.

mod actions;
mod assets;
mod call_kinds;
mod chart;
mod config;
mod cookie;
mod export;
mod fields;
mod filter_words;
mod form_preview;
mod frame;
mod guard;
mod known_destinations;
mod known_health;
mod live;
mod login;
mod named_timer;
mod namespace_picker;
mod origin;
mod pages;
mod preference_switches;
mod preferences;
mod preferences_page;
mod problem;
mod problem_page;
mod region;
mod retry_curve;
mod session;
mod text;
mod timer_attempts;
mod timer_draft;
mod timer_fields;
mod timer_form;
mod timer_life;
mod timer_rows;
mod visitor;
mod zone;

#[cfg(test)]
mod rig;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use axum::{Router, middleware, routing};
use commands::{Commands, KeyRing};
use domain::Caller;

pub use config::{
    ConsoleConfig, ConsoleMode, ConsoleUrl, Development, Export, HealthProbe, HealthReading, Payloads, RateCheck, SignedCall,
    TimerReader, VerifySignature,
};

use crate::{
    known_destinations::KnownDestinations, known_health::KnownHealth, live::Live, login::LoginLimit,
    namespace_picker::KnownNamespaces, session::Sessions,
};

/// What every page can reach.
pub(crate) struct Shared {
    config: ConsoleConfig,
    /// On behalf of the administrator; pages have those of their [`visitor::Visitor`].
    unrestricted: Commands,
    keyring: Arc<KeyRing>,
    sessions: Sessions,
    login_limit: LoginLimit,
    live: Live,
    known_namespaces: KnownNamespaces,
    known_health: KnownHealth,
    known_destinations: KnownDestinations,
    /// Until it was used.
    login_token: Mutex<Option<String>>,
}

/// The whole console. Its paths begin with `/console`, behind the base path.
pub fn router(config: ConsoleConfig, commands: &Commands, keyring: Arc<KeyRing>) -> Router {
    let shared = Arc::new(Shared {
        keyring,
        sessions: Sessions::new(&config.api_key),
        login_limit: LoginLimit::default(),
        live: Live::default(),
        known_namespaces: KnownNamespaces::default(),
        known_health: KnownHealth::default(),
        known_destinations: KnownDestinations::default(),
        login_token: Mutex::new(config.development.as_ref().and_then(|development| development.login_token.clone())),
        unrestricted: commands.on_behalf_of(Caller::Administrator),
        config,
    });
    Router::new()
        .route("/console", routing::get(pages::overview::show))
        .route("/console/", routing::get(pages::overview::show))
        .route("/console/first", routing::post(pages::overview::first))
        .route("/console/login", routing::get(login::show).post(login::log_in))
        .route("/console/logout", routing::post(login::log_out))
        .route("/console/assets/{name}", routing::get(assets::serve))
        .route("/console/preferences", routing::get(preferences_page::show).post(preferences_page::set))
        .route("/console/timers", routing::get(pages::timers::show))
        .route("/console/timers.csv", routing::get(export::csv))
        .route("/console/timers.json", routing::get(export::json))
        .route("/console/timers.ndjson", routing::get(export::ndjson))
        .route("/console/timers/new", routing::get(pages::new_timer::show).post(pages::new_timer::create))
        .route("/console/timers/{id}/edit", routing::get(pages::edit_timer::show).post(pages::edit_timer::update))
        .route("/console/operations", routing::get(pages::operations::show))
        .route("/console/operations/new", routing::get(pages::bulk::preview).post(pages::bulk::start))
        .route("/console/operations/{id}", routing::get(pages::operations::show_one))
        .route("/console/operations/{id}/stop", routing::post(pages::operations::stop))
        .route("/console/failed", routing::get(pages::failed::show))
        .route("/console/timers/{id}", routing::get(pages::timer::show))
        .route("/console/timers/{id}/verify", routing::get(pages::signature::show).post(pages::signature::verify))
        .route("/console/timers/{id}/{action}", routing::get(actions::confirm).post(actions::act))
        .route("/console/live", routing::get(live::follow))
        .route("/console/destinations", routing::get(pages::destinations::show))
        .route("/console/destinations/{name}", routing::get(pages::destinations::show_one))
        .route("/console/namespaces", routing::get(pages::namespaces::show))
        .route("/console/keys", routing::get(pages::keys::show).post(pages::keys::create))
        .route("/console/keys/{id}/revoke", routing::get(pages::keys::confirm).post(pages::keys::revoke))
        .route("/console/cluster", routing::get(pages::cluster::show))
        .route("/console/inbox", routing::get(pages::inbox::show))
        .route("/console/inbox/again", routing::post(pages::inbox::again))
        .route("/console/inbox/answers", routing::post(pages::inbox::program))
        .route("/console/inbox/clock", routing::post(pages::inbox::advance))
        .route("/console/inbox/clear", routing::post(pages::inbox::clear))
        .route("/console/about", routing::get(pages::about::show))
        .route("/console/{*rest}", routing::any(problem::nowhere))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), guard::around))
        .with_state(shared)
}
