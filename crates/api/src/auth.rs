use std::{fmt, sync::Arc};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{Api, error::ApiError};

/// The key that callers must show. Only its hash is kept: nothing that prints or compares it can give it away, not
/// even its length.
#[derive(Clone)]
pub struct ApiKey(Arc<[u8; 32]>);

impl ApiKey {
    pub fn new(key: &str) -> Self {
        Self(Arc::new(Sha256::digest(key.as_bytes()).into()))
    }

    pub(crate) fn matches(&self, shown: &[u8]) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown).into();
        shown.ct_eq(self.0.as_ref()).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Open to everybody: they show nothing of any timer.
pub(crate) const OPEN_PATHS: [&str; 5] = ["/healthz", "/ping", "/openapi.json", "/docs", "/metrics"];

/// Lets a request pass that shows the key, or that needs none.
pub(crate) async fn check(State(api): State<Api>, request: Request, next: Next) -> Response {
    let is_open = OPEN_PATHS.contains(&request.uri().path());
    let shown = request.headers().get("x-api-key");
    if is_open || shown.is_some_and(|shown| api.config.api_key.matches(shown.as_bytes())) {
        next.run(request).await
    } else {
        ApiError::Unauthorized.into_response()
    }
}
