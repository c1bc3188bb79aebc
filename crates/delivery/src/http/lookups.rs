//! Which host names are being looked up, and what was found.
//!
//! ```text
//!   connection ──┐                                           ┌── found, for some seconds ──▶ guard
//!   connection ──┼──▶ a permit ──▶ one lookup for each host ─┤
//!   connection ──┘    of its tenant                          └── failed: shared, not kept
//! ```
//!
//! A lookup cannot be stopped: it goes on when no call waits for it any more. So a name that is slow, or never answered, costs one
//! thread, one permit and one entry here until the system gives it up, however many calls want it; they fail when their own time is
//! up. The permits are shared fairly: a tenant with many such names keeps its own names waiting, and no others. A name that got
//! no permit in time was not looked up, and says nothing about the receiver.

mod permits;

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::TenantId;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use self::permits::{Permit, Permits};
use super::Names;

/// How many names are looked up at once, each in a thread of its own.
const LOOKUPS_MAX: usize = 256;
/// How long a name waits for a permit. It is no time of the call's, nor of the receiver's.
pub(super) const PERMIT_WAIT_MAX: Duration = Duration::from_secs(5);
/// How many answers are kept.
const FOUND_MAX: usize = 4096;
/// How long an answer is good for: long enough for a burst of calls, too short to miss that a receiver has moved.
const FOUND_AGE_MAX: Duration = Duration::from_secs(5);

/// All calls that waited for a lookup get the same.
pub(super) type Answer = Result<Vec<IpAddr>, Arc<io::Error>>;

/// There were too many lookups under way, of the same tenant or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Congested;

/// A lookup that is under way, or over.
#[derive(Clone)]
pub(super) enum Begun {
    Found(Vec<IpAddr>),
    UnderWay(watch::Receiver<Option<Answer>>),
}

/// Looks up each host once at a time, whichever call asks. What it answers must be guarded by the code that dials it.
pub(crate) struct Lookups {
    names: Arc<dyn Names>,
    age_max: Duration,
    permits: Permits,
    hosts: Arc<Mutex<Hosts>>,
}

#[derive(Default)]
struct Hosts {
    /// Lookups under way. Bounded by the permits, but for `localhost`.
    asked: HashMap<String, watch::Receiver<Option<Answer>>>,
    /// At most [`FOUND_MAX`].
    found: HashMap<String, Found>,
}

struct Found {
    addrs: Vec<IpAddr>,
    until: Instant,
}

impl Lookups {
    pub fn new(names: impl Names + 'static) -> Self {
        Self::kept_for(FOUND_AGE_MAX, names)
    }

    pub fn kept_for(age_max: Duration, names: impl Names + 'static) -> Self {
        Self { names: Arc::new(names), age_max, permits: Permits::new(LOOKUPS_MAX), hosts: Arc::default() }
    }

    /// Begins to look up a host for `tenant`, or joins a lookup that has begun, for whichever tenant. (One that still waits for its
    /// permit is not joined: a name could otherwise be held up by asking for it.) Dropping this abandons the wait for a permit.
    pub(super) async fn begin(&self, host: &str, tenant: TenantId) -> Result<Begun, Congested> {
        if let Some(begun) = lock(&self.hosts).begun(host) {
            return Ok(begun);
        }
        // The hosts file answers for this one, so that it needs no permit and never waits behind names of the network.
        let permit = if host == "localhost" {
            None
        } else {
            let granted = timeout(PERMIT_WAIT_MAX, self.permits.acquire(tenant)).await;
            Some(granted.ok().flatten().ok_or(Congested)?)
        };
        let mut hosts = lock(&self.hosts);
        // Meanwhile it may have been looked up for another call.
        if let Some(begun) = hosts.begun(host) {
            return Ok(begun);
        }
        let (tell, answer) = watch::channel(None);
        hosts.asked.insert(host.to_owned(), answer.clone());
        let under_way = UnderWay { host: host.to_owned(), hosts: Arc::clone(&self.hosts), tell, _permit: permit };
        tokio::spawn(under_way.go(Arc::clone(&self.names), self.age_max));
        Ok(Begun::UnderWay(answer))
    }
}

impl Begun {
    /// The addresses of the host. Dropping this abandons the wait, not the lookup.
    pub async fn answer(self) -> Answer {
        match self {
            Self::Found(addrs) => Ok(addrs),
            Self::UnderWay(mut answer) => {
                let answer = answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
                answer.unwrap_or_else(|| Err(Arc::new(io::Error::other("the lookup ended without an answer"))))
            }
        }
    }
}

impl Hosts {
    /// What was found lately, or the lookup under way.
    fn begun(&self, host: &str) -> Option<Begun> {
        match self.found.get(host).filter(|found| Instant::now() < found.until) {
            Some(found) => Some(Begun::Found(found.addrs.clone())),
            None => self.asked.get(host).cloned().map(Begun::UnderWay),
        }
    }

    fn keep(&mut self, host: &str, addrs: &[IpAddr], age_max: Duration) {
        let now = Instant::now();
        if self.found.len() >= FOUND_MAX {
            self.found.retain(|_, found| now < found.until);
        }
        if self.found.len() >= FOUND_MAX {
            // They are all fresh. To forget them costs some lookups; to choose among them would cost a search each time.
            self.found.clear();
        }
        self.found.insert(host.to_owned(), Found { addrs: addrs.to_vec(), until: now + age_max });
    }
}

/// A lookup that is listed as under way, until this is dropped: also by a panic, or with the runtime.
struct UnderWay {
    host: String,
    hosts: Arc<Mutex<Hosts>>,
    tell: watch::Sender<Option<Answer>>,
    _permit: Option<Permit>,
}

impl UnderWay {
    async fn go(self, names: Arc<dyn Names>, age_max: Duration) {
        let answer = names.lookup(self.host.clone()).await;
        if let Ok(addrs) = &answer
            && !addrs.is_empty()
        {
            lock(&self.hosts).keep(&self.host, addrs, age_max);
        }
        self.tell.send_replace(Some(answer.map_err(Arc::new)));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.hosts).asked.remove(&self.host);
    }
}

fn lock(hosts: &Mutex<Hosts>) -> MutexGuard<'_, Hosts> {
    hosts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
