use std::{
    fs::File,
    io,
    net::{IpAddr, ToSocketAddrs},
    pin::Pin,
    thread,
};

use tokio::sync::oneshot;

pub(crate) type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Who knows the addresses of a host. How often it is asked, and how many hosts at once, is not its concern.
pub(crate) trait Names: Send + Sync {
    fn lookup(&self, host: String) -> Lookup;
}

/// The resolver of the machine, with its hosts file.
pub(crate) struct SystemNames;

impl Names for SystemNames {
    /// In a thread of its own, because the resolver may take half a minute and cannot be stopped: in the runtime's threads for blocking
    /// work it would keep out other work, and keep a process from ending.
    fn lookup(&self, host: String) -> Lookup {
        Box::pin(async {
            let (tell, answer) = oneshot::channel();
            thread::Builder::new().name("lookup".to_owned()).spawn(move || {
                let found = (host, 0).to_socket_addrs().map(|found| found.map(|addr| addr.ip()).collect());
                // The resolver says that there is no such name when it could not open a file or a socket to ask.
                let found = found.map_err(|error| File::open("/dev/null").err().unwrap_or(error));
                // The receiving half is gone when the runtime has ended.
                let _ = tell.send(found);
            })?;
            answer.await.map_err(io::Error::other)?
        })
    }
}
