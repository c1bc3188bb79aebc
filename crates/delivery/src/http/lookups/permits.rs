//! Permits that are shared fairly among tenants, and waited for.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{FairShare, TenantId};
use tokio::sync::oneshot;

/// A tenant waits behind its own only: tenants that hold their share do not keep other tenants from theirs. When there are none left,
/// tenants get the next ones round-robin.
pub(super) struct Permits(Arc<Mutex<State>>);

/// One lookup. Given back when it is dropped.
pub(super) struct Permit {
    tenant: TenantId,
    state: Arc<Mutex<State>>,
}

struct State {
    free: usize,
    held: HashMap<TenantId, usize>,
    waiting: HashMap<TenantId, VecDeque<oneshot::Sender<Permit>>>,
    /// Tenants that wait, in the order of the round-robin.
    rotation: VecDeque<TenantId>,
}

impl Permits {
    pub fn new(max: usize) -> Self {
        let state = State { free: max, held: HashMap::new(), waiting: HashMap::new(), rotation: VecDeque::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for a permit, for as long as that may take. `None` is never seen: nothing drops a request that is waited for.
    pub async fn acquire(&self, tenant: TenantId) -> Option<Permit> {
        let granted = {
            let mut state = lock(&self.0);
            if !state.waiting.contains_key(&tenant) && state.take(tenant) {
                return Some(Permit { tenant, state: Arc::clone(&self.0) });
            }
            state.wait(tenant)
        };
        granted.await.ok()
    }

    #[cfg(test)]
    pub fn free(&self) -> usize {
        lock(&self.0).free
    }
}

impl State {
    fn take(&mut self, tenant: TenantId) -> bool {
        let held = self.held.get(&tenant).copied().unwrap_or_default();
        if FairShare::AMONG_TENANTS.left(self.free, held) == 0 {
            return false;
        }
        self.free -= 1;
        self.held.insert(tenant, held + 1);
        true
    }

    fn give_back(&mut self, tenant: TenantId) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(&tenant) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&tenant);
            }
        }
    }

    fn wait(&mut self, tenant: TenantId) -> oneshot::Receiver<Permit> {
        let (tell, granted) = oneshot::channel();
        let line = self.waiting.entry(tenant).or_default();
        if line.is_empty() {
            self.rotation.push_back(tenant);
        }
        // Those that have been given up would otherwise pile up behind a lookup that never ends.
        line.retain(|waiting| !waiting.is_closed());
        line.push_back(tell);
        granted
    }

    /// The next tenant of the round-robin that may have a permit, if one of those that wait may. It is counted as taken.
    fn next(&mut self) -> Option<(TenantId, oneshot::Sender<Permit>)> {
        for _ in 0..self.rotation.len() {
            let tenant = self.rotation.pop_front()?;
            let Some(line) = self.waiting.get_mut(&tenant) else { continue };
            while line.front().is_some_and(oneshot::Sender::is_closed) {
                line.pop_front();
            }
            if line.is_empty() {
                self.waiting.remove(&tenant);
                continue;
            }
            self.rotation.push_back(tenant);
            if self.take(tenant) {
                let tell = self.waiting.get_mut(&tenant).and_then(VecDeque::pop_front)?;
                return Some((tenant, tell));
            }
        }
        None
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        lock(&self.state).give_back(self.tenant);
        loop {
            let Some((tenant, tell)) = lock(&self.state).next() else { return };
            // One that was given up this very moment gives its permit back, and so the next gets it.
            drop(tell.send(Permit { tenant, state: Arc::clone(&self.state) }));
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use domain::Destination;
    use futures_util::FutureExt;

    use super::*;

    const fn tenant(number: u64) -> TenantId {
        Destination(number << 40).tenant()
    }

    fn at_once(permits: &Permits, number: u64) -> Option<Permit> {
        permits.acquire(tenant(number)).now_or_never().flatten()
    }

    fn all_at_once(permits: &Permits, number: u64) -> Vec<Permit> {
        std::iter::from_fn(|| at_once(permits, number)).collect()
    }

    #[test]
    fn one_tenant_leaves_some_to_the_next() {
        let permits = Permits::new(64);
        let (first, second) = (all_at_once(&permits, 1), all_at_once(&permits, 2));
        assert_eq!((first.len(), second.len()), (48, 12));
        assert!(at_once(&permits, 3).is_some());
        drop((first, second));
        assert_eq!(permits.free(), 64);
    }

    #[tokio::test]
    async fn those_that_wait_get_what_is_given_back_tenant_by_tenant() {
        let permits = Permits::new(2);
        let mut held = vec![at_once(&permits, 1).unwrap(), at_once(&permits, 1).unwrap()];
        let mut waiting: Vec<_> = [1, 1, 2, 3].map(|number| Box::pin(permits.acquire(tenant(number)))).into();
        assert!(waiting.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        let mut order = Vec::new();
        while !waiting.is_empty() {
            held.remove(0);
            let (at, permit) = waiting.iter_mut().enumerate().find_map(|(at, one)| Some((at, one.now_or_never()??))).unwrap();
            order.push(permit.tenant);
            held.push(permit);
            drop(waiting.remove(at));
        }
        assert_eq!(order, [1, 2, 3, 1].map(tenant));
    }

    #[test]
    fn those_that_gave_up_cost_no_permit() {
        let permits = Permits::new(4);
        let held = all_at_once(&permits, 1);
        for _ in 0..100_000 {
            assert!(at_once(&permits, 1).is_none());
        }
        assert_eq!(lock(&permits.0).waiting[&tenant(1)].len(), 1, "the last that gave up");
        drop(held);
        assert_eq!(permits.free(), 4);
        assert_eq!(all_at_once(&permits, 1).len(), 3);
    }
}
