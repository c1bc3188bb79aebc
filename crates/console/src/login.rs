//! Logging in with an API key, and out.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    extract::State,
    response::{IntoResponse, Redirect, Response},
};
use commands::CommandError;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{Markup, html};
use subtle::ConstantTimeEq;

use crate::{
    Shared, cookie,
    cookie::CookieAttributes,
    fields::{Fields, Form},
    frame,
    origin::Transport,
    preferences::{Preferences, is_own_path},
    problem::Problem,
    session::{Holder, LASTS},
    visitor::Peer,
};

/// How often an address may show a wrong key before it has to wait, and how long that is remembered.
const FAILURES_MAX: usize = 5;
const REMEMBERED: Duration = Duration::from_secs(60);
/// How many addresses are remembered.
const ADDRESSES_MAX: usize = 10_000;

pub(crate) const LOGGED_OUT: &str = "You were logged out, and nothing was changed.";
const WRONG: &str = "This is not a valid API key.";
const TOO_MANY: &str = "Too many wrong keys from this address. Wait a minute, then try again.";
const UNSAFE: &str = "Keys and cookies could be read on their way: this page was opened over plain HTTP. Open it over HTTPS and set \
                      CONSOLE_URL to that address, or open it on the machine itself.";

/// The failed logins of each address within the last minute, and those that are being decided.
#[derive(Default)]
pub(crate) struct LoginLimit(Mutex<HashMap<IpAddr, Vec<Duration>>>);

impl LoginLimit {
    /// Whether the address may show a key now. The attempt counts as a failure until it is withdrawn, so that no more guesses are
    /// decided at the same time than one after another.
    fn admit(&self, address: IpAddr, now: Duration) -> bool {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&address) {
            forget_some(&mut failures, now);
        }
        let at = failures.entry(address).or_default();
        at.retain(|at| is_remembered(*at, now));
        let is_admitted = at.len() < FAILURES_MAX;
        if is_admitted {
            at.push(now);
        }
        is_admitted
    }

    /// The attempt of that time was no failure.
    fn withdraw(&self, address: IpAddr, of: Duration) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = failures.get_mut(&address) else { return };
        if let Some(index) = at.iter().position(|at| *at == of) {
            at.swap_remove(index);
        }
        if at.is_empty() {
            failures.remove(&address);
        }
    }
}

/// Makes space for one more address: those whose minute is over are forgotten, or else the one that failed longest ago.
fn forget_some(failures: &mut HashMap<IpAddr, Vec<Duration>>, now: Duration) {
    failures.retain(|_, at| at.iter().any(|at| is_remembered(*at, now)));
    while failures.len() >= ADDRESSES_MAX {
        let oldest = failures.iter().min_by_key(|(_, at)| at.iter().max()).map(|(address, _)| *address);
        let Some(oldest) = oldest else { return };
        failures.remove(&oldest);
    }
}

/// One client, as far as an address tells: the owner of an IPv6 network has all addresses of it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

fn is_remembered(at: Duration, now: Duration) -> bool {
    now.saturating_sub(at) < REMEMBERED
}

/// `GET /console/login`.
pub(crate) async fn show(State(shared): State<Arc<Shared>>, Peer(peer): Peer, headers: HeaderMap, query: Fields) -> Response {
    let config = &shared.config;
    let preferences = Preferences::read(&headers);
    let is_unsafe = Transport::of(&headers, peer, config.url.as_ref(), config.insecure_cookie) == Transport::Unsafe;
    page(&shared, &preferences, query.get("next"), is_unsafe.then_some(UNSAFE)).into_response()
}

/// `POST /console/login`.
pub(crate) async fn log_in(
    State(shared): State<Arc<Shared>>,
    Peer(peer): Peer,
    headers: HeaderMap,
    Form(form): Form,
) -> Result<Response, Problem> {
    let config = &shared.config;
    let transport = Transport::of(&headers, peer, config.url.as_ref(), config.insecure_cookie);
    if transport == Transport::Unsafe {
        return Err(Problem::Unsafe(UNSAFE));
    }
    let next = form.get("next").filter(|next| is_own_path(next));
    let (clock, now) = (config.clock.monotonic(), config.clock.now());
    let address = peer.map(network);
    let refuse =
        |status: StatusCode, text| (status, page(&shared, &Preferences::read(&headers), next, Some(text))).into_response();
    if address.is_some_and(|address| !shared.login_limit.admit(address, clock)) {
        let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, TOO_MANY);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
        return Ok(response);
    }
    let found = holder(&shared, &form).await;
    if let Some(address) = address.filter(|_| !matches!(found, Ok(None))) {
        shared.login_limit.withdraw(address, clock);
    }
    let Some(holder) = found? else { return Ok(refuse(StatusCode::FORBIDDEN, WRONG)) };
    let cookie = shared.sessions.issue(holder, now);
    let mut response = Redirect::to(&format!("{}{}", config.base_path, next.unwrap_or("/console"))).into_response();
    set_session(&mut response, &shared, transport, &cookie, LASTS.as_secs_up());
    Ok(response)
}

/// Whose key the form shows.
async fn holder(shared: &Shared, form: &Fields) -> Result<Option<Holder>, CommandError> {
    if let Some(token) = form.get("once") {
        return Ok(shared.take_login_token(token).then_some(Holder::Administrator));
    }
    let Some(key) = form.get("key").map(str::trim) else { return Ok(None) };
    if shared.sessions.is_administrator(key) {
        return Ok(Some(Holder::Administrator));
    }
    Ok(shared.keyring.find(key.as_bytes()).await?.map(|key| Holder::Key(key.id)))
}

impl Shared {
    /// Whether this is the token of `timer dev`. It counts once.
    fn take_login_token(&self, shown: &str) -> bool {
        let mut token = self.login_token.lock().unwrap_or_else(PoisonError::into_inner);
        let is_right = token.as_ref().is_some_and(|token| token.as_bytes().ct_eq(shown.as_bytes()).into());
        if is_right {
            *token = None;
        }
        is_right
    }
}

/// `POST /console/logout`: this browser forgets. A copy of the cookie ends with its time, or with its key.
pub(crate) async fn log_out(State(shared): State<Arc<Shared>>, Peer(peer): Peer, headers: HeaderMap) -> Response {
    let config = &shared.config;
    let transport = Transport::of(&headers, peer, config.url.as_ref(), config.insecure_cookie);
    let mut response = Redirect::to(&format!("{}/console/login", config.base_path)).into_response();
    set_session(&mut response, &shared, transport, "", 0);
    response
}

fn set_session(response: &mut Response, shared: &Shared, transport: Transport, value: &str, seconds: i64) {
    let is_secure = transport == Transport::Https;
    let own = format!("{}/console", shared.config.base_path);
    // A name with the prefix `__Host-` demands the root.
    let path = if is_secure { "/" } else { own.as_str() };
    let attributes = CookieAttributes { path, is_secure, is_http_only: true, seconds };
    if let Some(set) = cookie::write(transport.cookie_name(), value, attributes) {
        response.headers_mut().append(header::SET_COOKIE, set);
    }
}

pub(crate) fn page(shared: &Arc<Shared>, preferences: &Preferences, next: Option<&str>, notice: Option<&str>) -> Markup {
    let body = html! {
        section.card.login {
            div.body {
                form #login .stack method="post" action={ (shared.config.base_path) "/console/login" } {
                    h1 { "Log in" }
                    @if let Some(notice) = notice { p.notice.bad role="alert" { (notice) } }
                    @if let Some(next) = next { input type="hidden" name="next" value=(next); }
                    input #once type="hidden" name="once" value="";
                    label for="key" { "API key" }
                    input #key type="password" name="key" autocomplete="current-password" autofocus spellcheck="false"
                        aria-describedby="key-hint";
                    p #key-hint .muted { "The key is exchanged for a cookie of 12 hours. You see and do what the key permits." }
                    button.main { "Log in" }
                }
            }
        }
        p.muted.center { a href={ (shared.config.base_path) "/docs" } { "API documentation" } }
    };
    frame::bare(shared, preferences, "Log in", body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_client() {
        for (one, other, same) in [
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("::ffff:10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
        ] {
            assert_eq!(network(one.parse().unwrap()) == network(other.parse().unwrap()), same, "{one} {other}");
        }
    }

    #[test]
    fn after_five_failures_an_address_waits_for_a_minute() {
        let limit = LoginLimit::default();
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for second in 0..5 {
            assert!(limit.admit(one, Duration::from_secs(second)));
        }
        assert!(!limit.admit(one, Duration::from_secs(5)) && limit.admit(other, Duration::from_secs(5)));
        assert!(!limit.admit(one, Duration::from_secs(59)));
        assert!(limit.admit(one, Duration::from_secs(60)));
    }

    #[test]
    fn what_is_being_decided_counts_and_a_right_key_does_not() {
        let limit = LoginLimit::default();
        let (address, now) = (IpAddr::from([10, 0, 0, 1]), Duration::from_secs(7));
        let admitted = (0..20).filter(|_| limit.admit(address, now)).count();
        assert_eq!(admitted, FAILURES_MAX, "none of them has failed yet");
        limit.withdraw(address, now);
        assert!(limit.admit(address, now) && !limit.admit(address, now));
        (0..FAILURES_MAX).for_each(|_| limit.withdraw(address, now));
        assert!(limit.0.lock().unwrap().is_empty());
    }

    #[test]
    fn only_so_many_addresses_are_remembered_the_latest_of_them() {
        let limit = LoginLimit::default();
        let address = |n: u32| IpAddr::from((n + 1).to_be_bytes());
        for n in 0..ADDRESSES_MAX as u32 + 10 {
            assert!((0..FAILURES_MAX).all(|_| limit.admit(address(n), Duration::from_millis(n.into()))));
        }
        assert_eq!(limit.0.lock().unwrap().len(), ADDRESSES_MAX);
        let now = Duration::from_secs(11);
        assert!(limit.admit(address(0), now) && !limit.admit(address(ADDRESSES_MAX as u32), now));
    }
}
