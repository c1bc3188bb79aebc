//! Which host names are being looked up, and what was found.
//!
//! ```text
//!   connection ──┐                                  ┌── found, for some seconds ──▶ guard
//!   connection ──┼──▶ one lookup for each host ─────┤
//!   connection ──┘    in one of LOOKUPS_MAX slots   └── failed: shared, not kept
//! ```
//!
//! A lookup cannot be stopped: it goes on when nobody waits for it any more. So a name that is slow, or never answered, costs one
//! thread, one slot and one entry here until the system gives it up, however many calls want it; they fail when their own time is up.
//! Other names are held up only while [`LOOKUPS_MAX`] names are slow at once, `localhost` not even then.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, timeout},
};

use super::{Names, connect::CONNECT_MAX};

/// How many names are looked up at once, each in a thread of its own.
const LOOKUPS_MAX: usize = 256;
/// How many answers are kept.
const FOUND_MAX: usize = 4096;
/// How long an answer is good for: long enough for a burst of calls, too short to miss that a receiver has moved.
const FOUND_AGE_MAX: Duration = Duration::from_secs(5);

/// Everybody who waited for a lookup gets the same.
pub(super) type Answer = Result<Vec<IpAddr>, Arc<io::Error>>;

/// Looks up each host once at a time, whoever asks. What it answers must be guarded by whoever dials it.
pub(crate) struct Lookups {
    names: Arc<dyn Names>,
    age_max: Duration,
    slots: Arc<Semaphore>,
    hosts: Arc<Mutex<Hosts>>,
}

#[derive(Default)]
struct Hosts {
    /// Lookups under way. Bounded by the slots, and by the calls that began to wait for one in the last [`CONNECT_MAX`].
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
        Self { names: Arc::new(names), age_max, slots: Arc::new(Semaphore::new(LOOKUPS_MAX)), hosts: Arc::default() }
    }

    /// The addresses of a host. Dropping this abandons the wait, not the lookup.
    pub async fn addresses(&self, host: &str) -> Answer {
        let (mut answer, tell) = {
            let mut hosts = lock(&self.hosts);
            if let Some(found) = hosts.found.get(host).filter(|found| Instant::now() < found.until) {
                return Ok(found.addrs.clone());
            }
            hosts.join(host)
        };
        if let Some(tell) = tell {
            let under_way = UnderWay { host: host.to_owned(), hosts: Arc::clone(&self.hosts), tell };
            // The hosts file answers for this one, so that it needs no slot and never waits behind names of the network.
            let slots = (host != "localhost").then(|| Arc::clone(&self.slots));
            tokio::spawn(under_way.go(slots, Arc::clone(&self.names), self.age_max));
        }
        let answer = answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        answer.unwrap_or_else(|| Err(Arc::new(io::Error::other("the lookup ended without an answer"))))
    }
}

impl Hosts {
    /// Where the answer of the lookup under way will be; with the other end of it if there is none under way and the caller is to
    /// begin it.
    fn join(&mut self, host: &str) -> (watch::Receiver<Option<Answer>>, Option<watch::Sender<Option<Answer>>>) {
        if let Some(answer) = self.asked.get(host) {
            return (answer.clone(), None);
        }
        let (tell, answer) = watch::channel(None);
        self.asked.insert(host.to_owned(), answer.clone());
        (answer, Some(tell))
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
}

impl UnderWay {
    async fn go(self, slots: Option<Arc<Semaphore>>, names: Arc<dyn Names>, age_max: Duration) {
        let answer = match slots {
            None => names.lookup(self.host.clone()).await,
            Some(slots) => match timeout(CONNECT_MAX, slots.acquire()).await {
                Ok(_slot) => names.lookup(self.host.clone()).await,
                Err(_) => {
                    Err(io::Error::other(format!("{LOOKUPS_MAX} other host names are being looked up and have no answer yet")))
                }
            },
        };
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
