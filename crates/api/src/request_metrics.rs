//! How many requests were answered, and how fast.
//!
//! A metric has a name and labels, and finding it by them takes longer than counting: each is registered once and kept.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use http::{Method, StatusCode};
use metrics::{Counter, Histogram};

/// The metrics of all routes. They are as many as there are routes, methods that are known and statuses, whatever clients send.
#[derive(Default)]
pub(crate) struct RequestMetrics(RwLock<HashMap<String, Route>>);

struct Route {
    duration: Histogram,
    answered: Vec<(&'static str, StatusCode, Counter)>,
}

impl RequestMetrics {
    /// Counts one answer.
    pub(crate) fn answered(&self, route: &str, method: &Method, status: StatusCode, took: Duration) {
        let method = known(method);
        let is_counted = |route: &Route| route.count(method, status, took);
        if !self.0.read().unwrap_or_else(PoisonError::into_inner).get(route).is_some_and(is_counted) {
            let mut routes = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let found = routes.entry(route.to_owned()).or_insert_with(|| Route::new(route));
            found.prepare(route, method, status);
            found.count(method, status, took);
        }
    }
}

impl Route {
    fn new(route: &str) -> Self {
        let duration = metrics::histogram!("timer_http_request_duration_seconds", "route" => route.to_owned());
        Self { duration, answered: Vec::new() }
    }

    /// Counts the answer if its counter is registered; returns whether it was counted.
    fn count(&self, method: &str, status: StatusCode, took: Duration) -> bool {
        let Some((.., counter)) = self.answered.iter().find(|(of, with, _)| *of == method && *with == status) else {
            return false;
        };
        counter.increment(1);
        self.duration.record(took.as_secs_f64());
        true
    }

    /// Registers the counter, unless another request has done so meanwhile.
    fn prepare(&mut self, route: &str, method: &'static str, status: StatusCode) {
        if !self.answered.iter().any(|(of, with, _)| *of == method && *with == status) {
            let counter = metrics::counter!("timer_http_requests_total", "route" => route.to_owned(), "method" => method, "status" => status.as_u16().to_string());
            self.answered.push((method, status, counter));
        }
    }
}

/// A client may make up methods; metrics must not grow with them.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "PATCH" => "PATCH",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
