//! Where the web console is mounted: beside the API, behind the same listener, with a login of its own.

use axum::{
    Router,
    extract::{ConnectInfo, Request, State},
    response::{IntoResponse, Redirect, Response},
    routing,
};
use http::{HeaderMap, header};

use crate::{Api, Connected, error::ApiError};

const CONSOLE: &str = "/console";

/// The routes of the API with those of the console, if there is one. `/` leads a browser to it.
pub(crate) fn mounted(routes: Router, api: &Api) -> Router {
    let Some(console) = api.config.console.clone() else { return routes };
    routes.merge(console).merge(Router::new().route("/", routing::any(root)).with_state(api.clone()))
}

/// Whether a request is for the console, which asks for no key but logs in; tells the console where the request comes from.
pub(crate) fn takes(api: &Api, request: &mut Request) -> bool {
    if api.config.console.is_none() {
        return false;
    }
    let path = request.uri().path();
    let is_page = path.strip_prefix(CONSOLE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_root = path == "/" && accepts_pages(request.headers());
    if is_page && let Some(&Connected { address, .. }) = request.extensions().get() {
        request.extensions_mut().insert(ConnectInfo(address));
    }
    is_page || is_root
}

/// A browser says that it takes HTML; other clients are told that there is no such route.
fn accepts_pages(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|kinds| kinds.split(',')).any(|kind| kind.trim().to_ascii_lowercase().starts_with("text/html"))
}

async fn root(State(api): State<Api>, headers: HeaderMap) -> Response {
    if accepts_pages(&headers) {
        Redirect::to(&format!("{}{CONSOLE}", api.config.base_path.as_str())).into_response()
    } else {
        ApiError::NoSuchRoute(api.config.base_path.clone()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        BasePath,
        rig::{Rig, request},
    };
    use axum::{Router, routing};

    fn console() -> Router {
        Router::new().route("/console", routing::get(async || "pages"))
    }

    #[tokio::test]
    async fn a_browser_is_led_to_the_console_and_other_clients_are_not() {
        let rig = Rig::with_console(console(), BasePath::parse("BASE_PATH", "/x").unwrap());
        let asking = |path: &str, accept: &str| {
            let mut request = request("GET", path, "");
            request.headers_mut().remove("x-api-key");
            request.headers_mut().insert("accept", accept.parse().unwrap());
            request
        };
        let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
        let led = rig.send(asking("/x/", browser)).await;
        assert_eq!((led.status.as_u16(), led.headers["location"].to_str().unwrap()), (303, "/x/console"));
        assert_eq!(rig.send(asking("/x/console", browser)).await.text, "pages");
        assert_eq!(rig.send(asking("/x/", "*/*")).await.refused(401, 4), "unauthorized");
        assert_eq!(rig.get("/x/").await.refused(404, 3), "no such route: see /x/docs");
        for path in ["/x/consoles", "/x/timers", "/x/keys"] {
            assert_eq!(rig.send(asking(path, browser)).await.refused(401, 4), "unauthorized", "{path}");
        }
        let without = Rig::new();
        assert_eq!(without.send(asking("/", browser)).await.status, 401);
        assert_eq!(without.send(asking("/console", browser)).await.status, 401);
    }
}
