//! From a host name to a connection: resolve, guard, dial, and a TLS handshake where the URL asks for one.
//!
//! The guard stands between the lookup and the dialling, and what passes it is all that can be dialled: the address is not looked up
//! again.

use std::{
    error::Error,
    io, iter,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ::http::Uri;
use domain::TenantId;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::time::timeout;
use tower::Service;

use super::{
    Lookups,
    error_chain::cause,
    intake::Metered,
    lookups::{Begun, Congested},
    shortage,
};
use crate::{Denied, Egress, SetupError, Shortage};

/// How long lookup, dialling and handshake may take together. A callback with a shorter timeout does not wait that long.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long a call waits for the addresses of its receiver before its own time begins.
const LOOK_AHEAD_MAX: Duration = Duration::from_millis(250);

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, ConnectError>> + Send>>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Denied(Denied),
    #[error("the host name could not be resolved")]
    Lookup(#[source] Arc<io::Error>),
    #[error("the host name has no address")]
    NoAddress,
    #[error("the address could not be dialled")]
    Dial(#[source] Box<dyn Error + Send + Sync>),
    #[error("the TLS handshake failed")]
    Tls(#[source] Box<dyn Error + Send + Sync>),
    #[error("no connection in time")]
    Timeout,
    #[error("this machine is short of {}", .0.label())]
    Short(Shortage),
}

#[derive(Clone)]
pub(super) struct Connector {
    egress: Arc<Egress>,
    lookups: Arc<Lookups>,
    tls: Arc<ClientConfig>,
}

/// Dials once, where the lookup leads.
#[derive(Clone)]
struct Dialer {
    egress: Arc<Egress>,
    lookup: Option<Begun>,
}

impl Connector {
    pub fn new(egress: Egress, lookups: Lookups, roots: RootCertStore) -> Result<Self, SetupError> {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { egress: Arc::new(egress), lookups: Arc::new(lookups), tls: Arc::new(tls) })
    }

    /// Has the host's addresses found, so that dialling need not wait for them. What does not come soon is waited for by the
    /// call that dials. The wait until the lookup begins is no time of the call's. An address needs no lookup.
    pub async fn look_ahead(&self, uri: &Uri, tenant: TenantId) -> Result<Option<Begun>, Congested> {
        let (name, None) = host(uri) else { return Ok(None) };
        let lookup = self.lookups.begin(name, tenant).await?;
        let _ = timeout(LOOK_AHEAD_MAX, lookup.clone().answer()).await;
        Ok(Some(lookup))
    }

    /// A connection to where the lookup leads.
    pub async fn connect(&self, uri: Uri, lookup: Option<Begun>) -> Result<MaybeHttpsStream<TokioIo<Metered>>, ConnectError> {
        let dialer = Dialer { egress: Arc::clone(&self.egress), lookup };
        let mut https = HttpsConnector::from((dialer, Arc::clone(&self.tls)));
        match timeout(CONNECT_MAX, https.call(uri)).await {
            Ok(Ok(stream)) => Ok(stream),
            // The dialler speaks for itself; what remains is the handshake.
            Ok(Err(error)) => Err(error.downcast().map_or_else(ConnectError::Tls, |error| *error)),
            Err(_) => Err(ConnectError::Timeout),
        }
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<Metered>;
    type Error = ConnectError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { dialer.dial(uri).await })
    }
}

impl Dialer {
    async fn dial(&self, uri: Uri) -> Result<TokioIo<Metered>, ConnectError> {
        let addrs = self.guarded(&uri).await?;
        let mut tcp = HttpConnector::new_with_resolver(Guarded(addrs.clone()));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_MAX));
        let refused = match tcp.call(uri).await {
            Ok(stream) => return Ok(TokioIo::new(Metered::new(stream.into_inner()))),
            Err(error) => error,
        };
        let short = cause::<io::Error>(&refused).and_then(|error| shortage::of_dial(error, &addrs));
        Err(short.map_or_else(|| ConnectError::Dial(refused.into()), ConnectError::Short))
    }

    /// Every address the host has, if every one of them may be dialled: an answer that mixes good and bad is no mistake.
    async fn guarded(&self, uri: &Uri) -> Result<Vec<IpAddr>, ConnectError> {
        let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default_port);
        let (host, addrs) = match host(uri) {
            (host, Some(addr)) => (host, vec![addr]),
            (host, None) => match self.lookup.clone() {
                Some(lookup) => (host, lookup.answer().await.map_err(not_found)?),
                None => (host, Vec::new()),
            },
        };
        if addrs.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        for addr in &addrs {
            self.egress.check(*addr, host, port).map_err(ConnectError::Denied)?;
        }
        Ok(addrs)
    }
}

impl From<Congested> for ConnectError {
    fn from(_: Congested) -> Self {
        Self::Short(Shortage::Lookups)
    }
}

fn not_found(error: Arc<io::Error>) -> ConnectError {
    shortage::of_lookup(&error).map_or_else(|| ConnectError::Lookup(error), ConnectError::Short)
}

/// The host as it stands in the URL, and its address if it is one.
fn host(uri: &Uri) -> (&str, Option<IpAddr>) {
    let host = uri.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (host, host.parse().ok())
}

/// Stands in for a resolver where everything has been resolved. (It is not asked about a host that is an address: that one is dialled
/// as it stands in the URL, which is what was guarded.)
#[derive(Clone)]
struct Guarded(Vec<IpAddr>);

impl Service<Name> for Guarded {
    type Response = iter::Map<std::vec::IntoIter<IpAddr>, fn(IpAddr) -> SocketAddr>;
    type Error = io::Error;
    type Future = std::future::Ready<Result<Self::Response, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        // The connector puts the port of the URL in the place of 0.
        let at_any_port: fn(IpAddr) -> SocketAddr = |addr| SocketAddr::new(addr, 0);
        std::future::ready(Ok(std::mem::take(&mut self.0).into_iter().map(at_any_port)))
    }
}
