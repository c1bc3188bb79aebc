use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
};

pub(crate) type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Who knows the addresses of a host. Asked once for every connection; the answer is guarded, then dialled.
pub(crate) trait Names: Send + Sync {
    fn lookup(&self, host: String) -> Lookup;
}

/// The resolver of the machine, with its hosts file.
pub(crate) struct SystemNames;

impl Names for SystemNames {
    fn lookup(&self, host: String) -> Lookup {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|found: SocketAddr| found.ip()).collect()) })
    }
}
