//! What is due, or will be in a moment, and waits for a permit, in line for its tenant and its receiver.

use std::collections::VecDeque;

use domain::{Destination, FairShare, ReceiverId, TenantId, Timestamp};

use crate::{hash::Shares, position::Position};

/// The number of entries that a tenant may always have, and each of its destinations while the tenant has room left.
const READY_MIN: usize = 256;
/// A destination may have at most this part of the room that its tenant has left. Entries for a receiver that hangs can thus pile
/// up, but neither they nor those of a tenant with many such receivers fill the window.
const SHARE_OF_ROOM: usize = 2;

/// Lines of due entries. Tenants are served round-robin, and so are the destinations of a tenant. A destination that has as many
/// permits as it may have is parked, out of the rotation, so that thousands of them are not looked at each time.
///
/// Each destination with entries is in the rotation of its tenant or parked, and a tenant is in the rotation if it has one there.
#[derive(Debug, Default)]
pub struct Ready {
    lines: Shares<Destination, VecDeque<Position>>,
    tenants: Shares<TenantId, Tenant>,
    rotation: VecDeque<TenantId>,
    parked: Shares<ReceiverId, Vec<TenantId>>,
    len: usize,
}

#[derive(Debug, Default)]
struct Tenant {
    /// Entries in all its lines.
    len: usize,
    rotation: VecDeque<Destination>,
}

/// Whether an entry may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Now,
    NotForDestination,
    NotForTenant,
}

impl Ready {
    pub const fn len(&self) -> usize {
        self.len
    }

    /// When the one was due that has been waiting for longest.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.lines.values().filter_map(|line| line.front()).map(|(at, _)| *at).min()
    }

    /// Whether one more may stand in this line, when there may be `budget` in all.
    pub fn has_capacity(&self, destination: Destination, budget: usize) -> bool {
        let of_tenant = self.tenants.get(&destination.tenant()).map_or(0, |tenant| tenant.len);
        let left = FairShare::AMONG_TENANTS.left(budget.saturating_sub(self.len), of_tenant);
        if left == 0 {
            return of_tenant < READY_MIN;
        }
        let own = self.lines.get(&destination).map_or(0, VecDeque::len);
        own < (left / SHARE_OF_ROOM).max(READY_MIN)
    }

    pub fn push(&mut self, destination: Destination, position: Position) {
        let line = self.lines.entry(destination).or_default();
        let is_new = line.is_empty();
        line.push_back(position);
        self.len += 1;
        self.tenants.entry(destination.tenant()).or_default().len += 1;
        if is_new {
            self.rotate(destination);
        }
    }

    fn rotate(&mut self, destination: Destination) {
        let rotation = &mut self.tenants.entry(destination.tenant()).or_default().rotation;
        if rotation.is_empty() {
            self.rotation.push_back(destination.tenant());
        }
        rotation.push_back(destination);
    }

    /// Takes at most `limit` entries, each that `start` lets go. Says whether a tenant had to wait.
    pub fn take(&mut self, limit: usize, mut start: impl FnMut(Destination, Position) -> Start) -> bool {
        let mut waiting = Vec::new();
        let mut taken = 0;
        while taken < limit {
            let Some(id) = self.rotation.pop_front() else { break };
            let Some(tenant) = self.tenants.get_mut(&id) else { continue };
            while let Some(destination) = tenant.rotation.pop_front() {
                let Some(line) = self.lines.get_mut(&destination) else { continue };
                let Some(position) = line.front() else { continue };
                match start(destination, *position) {
                    Start::Now => {
                        line.pop_front();
                        if line.is_empty() {
                            self.lines.remove(&destination);
                        } else {
                            tenant.rotation.push_back(destination);
                        }
                        (taken, self.len, tenant.len) = (taken + 1, self.len - 1, tenant.len - 1);
                    }
                    Start::NotForDestination => {
                        self.parked.entry(destination.receiver()).or_default().push(id);
                        continue;
                    }
                    Start::NotForTenant => {
                        tenant.rotation.push_front(destination);
                        waiting.push(id);
                    }
                }
                break;
            }
            if tenant.len == 0 {
                self.tenants.remove(&id);
            } else if !tenant.rotation.is_empty() && waiting.last() != Some(&id) {
                self.rotation.push_back(id);
            }
        }
        let is_any_waiting = !waiting.is_empty();
        // They have waited for longest.
        waiting.into_iter().rev().for_each(|tenant| self.rotation.push_front(tenant));
        is_any_waiting
    }

    /// Whether about `count` may start, given how many more permits tenants and destinations may have.
    pub fn is_worth(
        &self,
        count: usize,
        left_of_tenant: impl Fn(TenantId) -> usize,
        left_of_destination: impl Fn(Destination) -> usize,
    ) -> bool {
        let mut found = 0;
        self.rotation.iter().any(|id| {
            let left = left_of_tenant(*id).min(count - found);
            let (mut of_tenant, rotation) = (0, self.tenants.get(id).map(|tenant| &tenant.rotation));
            for destination in rotation.into_iter().flatten() {
                if of_tenant >= left {
                    break;
                }
                let waiting = self.lines.get(destination).map_or(0, VecDeque::len);
                of_tenant += waiting.min(left_of_destination(*destination));
            }
            found += of_tenant.min(left);
            found >= count
        })
    }

    /// A permit of this receiver was given back, whichever tenant had it: lines to it may go on.
    pub fn unpark(&mut self, receiver: ReceiverId) {
        if self.parked.is_empty() {
            return;
        }
        let tenants = self.parked.remove(&receiver).unwrap_or_default();
        tenants.into_iter().for_each(|tenant| self.rotate(Destination::new(tenant, receiver)));
    }

    /// Everything is looked at again. Says whether something was parked.
    pub fn unpark_all(&mut self) -> bool {
        let parked = std::mem::take(&mut self.parked);
        let is_any = !parked.is_empty();
        for (receiver, tenants) in parked {
            tenants.into_iter().for_each(|tenant| self.rotate(Destination::new(tenant, receiver)));
        }
        is_any
    }

    /// Keeps only what `stays`.
    pub fn retain(&mut self, stays: impl Fn(&Position) -> bool) {
        let lines = std::mem::take(self).lines;
        for (destination, line) in lines {
            line.into_iter().filter(&stays).for_each(|position| self.push(destination, position));
        }
    }
}

#[cfg(test)]
mod tests;
