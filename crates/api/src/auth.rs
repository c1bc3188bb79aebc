//! Who asks, whether they may, and whether they ask too often. What they may ask for is for the commands to say.

use std::{fmt, net::IpAddr, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request},
    middleware::Next,
    response::{IntoResponse, Response},
};
use commands::Commands;
use domain::{AccessKey, Caller};
use http::{Extensions, HeaderMap, request::Parts};
use subtle::ConstantTimeEq;

use crate::{Api, Connected, client_network, console, error::ApiError};

/// The administrator's key. Only its hash is kept: nothing that prints or compares it can give it away, not even its length.
#[derive(Clone)]
pub struct ApiKey(Arc<[u8; 32]>);

impl ApiKey {
    pub fn new(key: &str) -> Self {
        Self(Arc::new(AccessKey::hash_of(key.as_bytes())))
    }

    pub(crate) fn matches(&self, shown: &[u8]) -> bool {
        AccessKey::hash_of(shown).ct_eq(self.0.as_ref()).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Paths that need no key: they show nothing of any timer.
pub(crate) const OPEN_PATHS: [&str; 5] = ["/healthz", "/ping", "/openapi.json", "/docs", "/metrics"];

/// The use cases that the client's key permits. Handlers can call no others.
#[derive(Clone)]
pub(crate) struct Permitted(pub Arc<Commands>);

impl FromRequestParts<Api> for Permitted {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, ApiError> {
        Ok(Self::of(&parts.extensions)?.clone())
    }
}

impl Permitted {
    pub(crate) fn of(extensions: &Extensions) -> Result<&Self, ApiError> {
        extensions.get().ok_or(ApiError::Internal)
    }
}

/// The same for a request that changes something. A key that may only read is told so before anything of the body is read.
pub(crate) struct Writing(pub Arc<Commands>);

impl FromRequestParts<Api> for Writing {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, ApiError> {
        let Permitted(commands) = Permitted::of(&parts.extensions)?.clone();
        commands.check_may_write()?;
        Ok(Self(commands))
    }
}

/// The same for a request that only the administrator may make.
pub(crate) struct Administering(pub Arc<Commands>);

impl FromRequestParts<Api> for Administering {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, ApiError> {
        let Permitted(commands) = Permitted::of(&parts.extensions)?.clone();
        commands.check_administrator()?;
        Ok(Self(commands))
    }
}

/// Lets a request pass that shows a key, or that needs none.
pub(crate) async fn check(api: &Api, mut request: Request, next: Next) -> Response {
    if !OPEN_PATHS.contains(&request.uri().path()) && !console::takes(api, &mut request) {
        let address = request.extensions().get().map(|Connected { address, .. }| client_network(*address));
        match permit(api, request.headers(), address).await {
            Ok(permitted) => _ = request.extensions_mut().insert(permitted),
            Err(refusal) => return refusal.into_response(),
        }
    }
    next.run(request).await
}

async fn permit(api: &Api, headers: &HeaderMap, address: Option<IpAddr>) -> Result<Permitted, ApiError> {
    let shown = headers.get("x-api-key").ok_or(ApiError::Unauthorized)?.as_bytes();
    let caller = if api.config.api_key.matches(shown) {
        Caller::Administrator
    } else {
        let wrong = || api.wrong_keys.refusal(address, api.unrestricted.clock.monotonic());
        Caller::Holder(Box::pin(api.keyring.find(shown)).await?.ok_or_else(wrong)?)
    };
    api.config.rates.take(&caller, api.unrestricted.clock.monotonic()).map_err(ApiError::TooManyRequests)?;
    Ok(Permitted(match caller {
        Caller::Administrator => Arc::clone(&api.unrestricted),
        holder => Arc::new(api.unrestricted.on_behalf_of(holder)),
    }))
}
