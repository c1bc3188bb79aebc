//! What surrounds every request: where it comes from, who makes it, and what a browser may do with the answer.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use commands::CommandError;
use domain::Caller;
use http::{HeaderValue, StatusCode, header, request::Parts, uri::PathAndQuery};

use crate::{
    ConsoleMode, Shared, cookie,
    fields::Fields,
    known_health, login, namespace_picker,
    origin::{self, Transport},
    preferences::Preferences,
    problem::Problem,
    problem_page,
    session::Holder,
    visitor::{Peer, Visitor},
};

/// Everything comes from here, nothing is inline, and no page stands in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
const LOGIN: &str = "/console/login";
const LIVE: &str = "/console/live";
const ASSETS: &str = "/console/assets/";

pub(crate) async fn around(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let mut response = match admit(&shared, &mut head).await {
        Ok(visitor) => problem_page::worded(next.run(Request::from_parts(head, body)).await, visitor.as_ref(), &shared),
        Err(refusal) => *refusal,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Without any referrer, browsers would not name the origin of our own forms either.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Lets a request pass that comes from a page of ours, if it changes anything, and that has a session, if it needs one.
async fn admit(shared: &Arc<Shared>, head: &mut Parts) -> Result<Option<Visitor>, Box<Response>> {
    let path = head.uri.path().to_owned();
    let refused = |problem: Problem| Box::new(problem_page::worded(problem.into_response(), None, shared));
    let is_safe = head.method.is_safe();
    if !is_safe && !origin::is_own(&head.headers, shared.config.url.as_ref()) {
        return Err(refused(Problem::OtherOrigin));
    }
    if path == LOGIN || path.starts_with(ASSETS) {
        return Ok(None);
    }
    let Some(mut visitor) = visitor(shared, head).await.map_err(|error| refused(error.into()))? else {
        return Err(Box::new(logged_out(shared, head)));
    };
    (shared.config.rate)(&visitor.commands.caller)
        .map_err(|wait| Box::new(problem_page::worded(Problem::TooManyRequests(wait).into_response(), Some(&visitor), shared)))?;
    let changes_nothing_stored =
        ["/console/logout", "/console/preferences"].contains(&path.as_str()) || path.ends_with("/verify");
    if !is_safe && !changes_nothing_stored && shared.config.mode == ConsoleMode::ReadOnly {
        return Err(Box::new(problem_page::worded(Problem::ReadOnlyConsole.into_response(), Some(&visitor), shared)));
    }
    if is_safe && path != LIVE {
        (visitor.namespaces, visitor.is_database_away) =
            tokio::join!(namespace_picker::names(&visitor), known_health::is_database_away(&visitor));
    }
    head.extensions.insert(visitor.clone());
    Ok(Some(visitor))
}

/// The viewer that the cookie of a request names, if its key is still valid.
pub(crate) async fn visitor(shared: &Arc<Shared>, head: &Parts) -> Result<Option<Visitor>, CommandError> {
    let headers = &head.headers;
    let config = &shared.config;
    let Peer(peer) = Peer::of(&head.extensions);
    let transport = Transport::of(headers, peer, config.url.as_ref(), config.insecure_cookie);
    let Some(cookie) = cookie::read(headers, transport.cookie_name()) else { return Ok(None) };
    let Some(session) = shared.sessions.read(cookie, config.clock.now()) else { return Ok(None) };
    let Some(caller) = caller(shared, session.holder).await? else { return Ok(None) };
    Ok(Some(Visitor {
        shared: Arc::clone(shared),
        commands: Arc::new(shared.unrestricted.on_behalf_of(caller)),
        session_ends_at: session.ends_at,
        preferences: Preferences::read(headers),
        origin: origin::opened_under(headers, config.url.as_ref()),
        path: head.uri.path_and_query().map_or("/console", PathAndQuery::as_str).to_owned(),
        namespaces: Arc::default(),
        is_database_away: false,
        is_live: false,
    }))
}

/// The holder of a session as a caller of commands, unless its key was revoked.
pub(crate) async fn caller(shared: &Shared, holder: Holder) -> Result<Option<Caller>, CommandError> {
    Ok(match holder {
        Holder::Administrator => Some(Caller::Administrator),
        Holder::Key(id) => shared.keyring.by_id(id).await?.map(Caller::Holder),
    })
}

/// A viewer is asked to log in, and led back to where it wanted to go.
fn logged_out(shared: &Arc<Shared>, head: &Parts) -> Response {
    let base = &shared.config.base_path;
    if !head.method.is_safe() {
        let page = login::page(shared, &Preferences::read(&head.headers), None, Some(login::LOGGED_OUT));
        return (StatusCode::UNAUTHORIZED, page).into_response();
    }
    let wanted = head.uri.path_and_query().map_or("/console", PathAndQuery::as_str);
    let next = Fields::from([("next", wanted)]);
    let next = if matches!(wanted, "/console" | "/console/") { Fields::default() } else { next };
    Redirect::to(&format!("{base}{LOGIN}{}", next.to_query())).into_response()
}
