//! How often one key may ask, and how often one address may show a wrong key.
//!
//! A bucket holds as many requests as may come at once, and fills at the rate. All that is kept of it is when it will be full again:
//! each request moves that moment on by what one request takes to come back.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{AccessKeyId, Caller};

use crate::error::ApiError;

/// How many requests one key may make, here: every process counts for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pub per_second: u32,
    /// How many may come at once after a pause.
    pub burst: u32,
}

impl RateLimit {
    /// When the bucket will be full again once `count` have been taken out of it, if that is allowed at `now`; else how long to wait.
    fn take(self, full_at: Duration, now: Duration, count: u32) -> Result<Duration, Duration> {
        let full_at = full_at.max(now);
        let missing = full_at - now;
        // One must be there. More may be taken, and are owed.
        let room = self.cost(self.burst.saturating_sub(1));
        match missing.checked_sub(room) {
            None | Some(Duration::ZERO) => Ok(full_at + self.cost(count)),
            Some(wait) => Err(wait),
        }
    }

    fn cost(self, count: u32) -> Duration {
        Duration::from_secs(1) * count / self.per_second.max(1)
    }
}

/// When each bucket will be full, on the monotonic clock.
struct Buckets<Key>(Mutex<HashMap<Key, Duration>>);

/// How many buckets are kept. One that is not known is full.
const BUCKETS_MAX: usize = 10_000;

impl<Key: Eq + Hash> Buckets<Key> {
    fn take(&self, limit: RateLimit, key: Key, now: Duration) -> Result<(), Duration> {
        let mut buckets = self.full_at();
        let full_at = limit.take(buckets.get(&key).copied().unwrap_or_default(), now, 1)?;
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&key) {
            forget_fullest(&mut buckets, now);
        }
        buckets.insert(key, full_at);
        Ok(())
    }

    fn full_at(&self) -> MutexGuard<'_, HashMap<Key, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets all that are full, and at least the half that will be full first: so the map is walked once in thousands of insertions, and
/// a flood of new keys does not wash out those that owe most.
fn forget_fullest<Key: Eq + Hash>(buckets: &mut HashMap<Key, Duration>, now: Duration) {
    let mut moments: Vec<Duration> = buckets.values().copied().collect();
    let middle = moments.len() / 2;
    let (_, median, _) = moments.select_nth_unstable(middle);
    let forgotten = now.max(*median);
    buckets.retain(|_, full_at| *full_at > forgotten);
}

/// The buckets of all keys, shared by all that take requests of a key: the API, and the console by the key of its cookie.
#[derive(Clone)]
pub struct Rates {
    limit: Option<RateLimit>,
    /// `None` is the administrator.
    buckets: Arc<Buckets<Option<AccessKeyId>>>,
}

impl fmt::Debug for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rates").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Rates {
    /// Makes the buckets of all keys. Without a limit every request is let in.
    pub fn new(limit: Option<RateLimit>) -> Self {
        Self { limit, buckets: Arc::new(Buckets(Mutex::default())) }
    }

    /// One request of this caller, now on the monotonic clock. Refused with how long to wait.
    pub fn take(&self, caller: &Caller, now: Duration) -> Result<(), Duration> {
        let Some(limit) = self.limit else { return Ok(()) };
        self.buckets.take(limit, caller.key_id(), now)
    }

    /// Charges the caller for `count` more items that came in one request, even where that leaves its bucket in debt.
    pub(crate) fn owe(&self, caller: &Caller, count: usize) {
        let Some(limit) = self.limit else { return };
        if let Some(full_at) = self.buckets.full_at().get_mut(&caller.key_id()) {
            *full_at += limit.cost(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }
}

/// How many wrong keys one client address may show: a right one is let in whatever was shown before.
const WRONG_KEYS: RateLimit = RateLimit { per_second: 1, burst: 20 };

/// The wrong keys of all addresses.
pub(crate) struct WrongKeys(Buckets<IpAddr>);

impl WrongKeys {
    pub(crate) fn new() -> Self {
        Self(Buckets(Mutex::default()))
    }

    /// What a wrong key from this address is answered. Where the address is not known, nothing is counted.
    pub(crate) fn refusal(&self, address: Option<IpAddr>, now: Duration) -> ApiError {
        match address.map(|address| self.0.take(WRONG_KEYS, address, now)) {
            None | Some(Ok(())) => ApiError::Unauthorized,
            Some(Err(wait)) => ApiError::TooManyWrongKeys(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_bucket_holds_a_burst_and_fills_at_the_rate() {
        let limit = RateLimit { per_second: 10, burst: 3 };
        let mut full_at = Duration::ZERO;
        // The moment of each request in milliseconds, and how long it is told to wait if it is refused.
        for (at, wait) in [
            (1000, None),
            (1000, None),
            (1000, None),
            (1000, Some(100)),
            (1060, Some(40)),
            (1100, None),
            (1199, Some(1)),
            (1200, None),
            (9000, None),
            (9000, None),
            (9000, None),
            (9000, Some(100)),
        ] {
            match limit.take(full_at, millis(at), 1) {
                Ok(next) => {
                    assert_eq!(wait, None, "{at}");
                    full_at = next;
                }
                Err(told) => assert_eq!(wait.map(millis), Some(told), "{at}"),
            }
        }
    }

    #[test]
    fn what_is_owed_must_come_back_first() {
        let rates = Rates::new(Some(RateLimit { per_second: 10, burst: 3 }));
        let take = |at| rates.take(&Caller::Administrator, millis(at)).is_ok();
        assert!(take(0));
        rates.owe(&Caller::Administrator, 99);
        assert!(!take(9_700) && !take(9_799) && take(9_800) && !take(9_801));
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let rates = Rates::new(None);
        assert!((0..1000).all(|_| rates.take(&Caller::Administrator, Duration::ZERO).is_ok()));
        assert!(rates.buckets.full_at().is_empty());
    }

    #[test]
    fn wrong_keys_are_counted_by_address_and_come_back_one_a_second() {
        let wrong = WrongKeys::new();
        let [one, two] = [1, 2].map(|n| Some(IpAddr::from([10, 0, 0, n])));
        let is_401 = |address, at| matches!(wrong.refusal(address, millis(at)), ApiError::Unauthorized);
        assert_eq!((0..200).filter(|_| is_401(one, 0)).count(), 20);
        assert!(is_401(two, 0) && (0..200).all(|_| is_401(None, 0)));
        assert!(!is_401(one, 999) && is_401(one, 1_000) && !is_401(one, 1_001));
    }

    #[test]
    fn however_many_addresses_show_wrong_keys_few_are_kept_and_the_worst_among_them() {
        let wrong = WrongKeys::new();
        let address = |n: usize| Some(IpAddr::from(u32::try_from(n).unwrap().to_be_bytes()));
        let is_401 = |n| matches!(wrong.refusal(address(n), Duration::ZERO), ApiError::Unauthorized);
        assert_eq!((0..200).filter(|_| is_401(0)).count(), 20);
        for n in 1..4 * BUCKETS_MAX {
            assert!(is_401(n), "{n}");
            assert!(wrong.0.full_at().len() <= BUCKETS_MAX, "{n}");
        }
        assert!(!is_401(0), "it has shown too many, whatever came from other addresses");
    }
}
