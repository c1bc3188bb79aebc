use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

use domain::{Shard, Timestamp};
use store::{HeartbeatReply, Member, NodeId, ShardLease, StoreError, StoreResult};

use crate::{Scheduler, assignment, clock_check::ClockCheck, held_shards::Changes};

/// A heartbeat that was answered, with what the clocks of this machine said.
struct HeartbeatSample {
    reply: HeartbeatReply,
    asked_at: Timestamp,
    begun: Duration,
    answered: Duration,
}

impl HeartbeatSample {
    fn tell(&self, check: &mut ClockCheck) {
        check.compare(self.asked_at, self.begun, self.answered.saturating_sub(self.begun), self.reply.now);
    }
}

impl Scheduler {
    /// One heartbeat: says that this node lives, learns who else does and what is held, gives away what belongs to others, and takes
    /// what belongs here and is free. Says how many shards are held.
    ///
    /// Once the node is leaving, or while its clock is wrong, nothing belongs to it.
    pub async fn beat_once(&self) -> StoreResult<usize> {
        let mut reply = self.beat().await?;
        // The comparison of the clocks that came with the pulse is newer than what it tells others of this node.
        let takes_shards = self.takes_shards();
        let itself = reply.members.iter_mut().find(|member| member.node == self.node);
        itself.into_iter().for_each(|member| member.takes_shards = takes_shards);
        let mine = assignment::shards_of(self.node, &reply.members, self.store.shards());
        let surplus: Vec<ShardLease> =
            reply.held.iter().copied().filter(|shard_lease| !mine.contains(&shard_lease.shard)).collect();
        let missing: Vec<Shard> =
            mine.into_iter().filter(|shard| reply.held.iter().all(|shard_lease| shard_lease.shard != *shard)).collect();
        if !surplus.is_empty() {
            self.hand_over(&surplus).await?;
        }
        self.awaits_shards.store(false, Ordering::Relaxed);
        if !missing.is_empty() && self.rejoin_grace().has_ended() {
            let taken = self.in_time(self.store.acquire(self.node, &missing)).await?;
            self.awaits_shards.store(taken.len() < missing.len(), Ordering::Relaxed);
            let gained = self.held_shards().add(&taken);
            self.apply(&Changes { gained, lost: Vec::new() });
        }
        Ok(self.held_shards().len())
    }

    async fn beat(&self) -> StoreResult<HeartbeatReply> {
        let lease = self.config.node_lease.as_duration();
        let mut check = *self.clock_check();
        let mut lease_end = self.held_shards().lease_end();
        let mut was_away = false;
        // Somebody who found this node dead may have taken its shards while its first sign of life was not yet to be seen, and that
        // does not see it either. Whoever comes after it is seen by the second, or sees that this node lives.
        let sign = loop {
            let sign = self.send_heartbeat().await?;
            if !check.has_jumped(self.now(), sign.answered) && lease_end.is_none_or(|end| sign.answered <= end) {
                break sign;
            }
            was_away = true;
            sign.tell(&mut check);
            lease_end = Some(sign.begun + lease);
        };
        let members = sign.reply.members.len();
        self.members.store(members, Ordering::Relaxed);
        if self.is_somebody_gone(&sign.reply.members) {
            // What somebody claimed in shards that it then gave away is now for others to take up.
            self.taken_over.notify_one();
        }
        metrics::gauge!("timer_nodes").set(members as f64);
        self.rejoin_grace().note(was_away, members, sign.answered, lease);
        // The clock is believed last: until then nothing is sent.
        let changes = self.held_shards().confirm(&sign.reply.held, sign.begun, was_away, lease);
        self.check_clock(&sign);
        self.apply(&changes);
        self.renewed.notify_waiters();
        self.wake();
        Ok(sign.reply)
    }

    /// Whether one who lived at the last heartbeat lives no more. Others may have come meanwhile, so that their number says nothing.
    fn is_somebody_gone(&self, members: &[Member]) -> bool {
        let living: BTreeSet<NodeId> = members.iter().map(|member| member.node).collect();
        let mut seen = self.seen();
        let is_somebody_gone = !seen.is_subset(&living);
        *seen = living;
        is_somebody_gone
    }

    async fn send_heartbeat(&self) -> StoreResult<HeartbeatSample> {
        let member = self.member();
        let (asked_at, begun) = (self.clock.now(), self.clock.monotonic());
        let reply = self.in_time(self.store.heartbeat(&member, self.config.node_lease)).await?;
        Ok(HeartbeatSample { reply, asked_at, begun, answered: self.clock.monotonic() })
    }

    /// A call that hangs must not take the whole lease: the next heartbeat may get through, and tells what came of this one.
    async fn in_time<T>(&self, call: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
        let time_max = self.config.node_lease.as_duration() / 3;
        let answer = tokio::time::timeout(time_max, call).await;
        answer.unwrap_or_else(|_| Err(StoreError::Unknown(format!("no answer within {time_max:?}").into())))
    }

    fn member(&self) -> Member {
        Member {
            node: self.node,
            name: self.config.name.clone(),
            version: self.config.version.clone(),
            started_at: self.started_at,
            takes_shards: self.takes_shards(),
            skew_micros: self.clock_check().skew_micros(),
        }
    }

    fn takes_shards(&self) -> bool {
        !self.leaving.load(Ordering::Relaxed) && self.clock_check().is_right()
    }

    fn check_clock(&self, sign: &HeartbeatSample) {
        let (was_wrong, is_wrong, skew) = {
            let mut check = self.clock_check();
            let was_wrong = check.is_wrong();
            sign.tell(&mut check);
            (was_wrong, check.is_wrong(), check.skew_micros() as f64 / 1e6)
        };
        metrics::gauge!("timer_clock_skew_seconds").set(skew);
        match (was_wrong, is_wrong) {
            (false, true) => tracing::error!(
                skew_seconds = skew,
                "the clock of this machine differs from the database's: this node fires nothing until they agree"
            ),
            (true, false) => tracing::info!(skew_seconds = skew, "the clock of this machine agrees with the database's again"),
            _ => {}
        }
    }

    fn apply(&self, changes: &Changes) {
        {
            let mut window = self.window();
            changes.lost.iter().for_each(|shard| window.close(*shard));
            changes.gained.iter().for_each(|shard| window.open(*shard));
        }
        if !changes.lost.is_empty() {
            metrics::counter!("timer_leases_lost_total").increment(1);
            metrics::counter!("timer_shards_lost_total").increment(changes.lost.len() as u64);
            tracing::warn!(shards = changes.lost.len(), "lost shards: the lease ran out, and another node took them");
        }
        if !changes.gained.is_empty() {
            metrics::counter!("timer_shards_gained_total").increment(changes.gained.len() as u64);
            tracing::info!(shards = changes.gained.len(), "took over shards");
            self.taken_over.notify_one();
            self.opened.notify_one();
        }
        metrics::gauge!("timer_shards_owned").set(self.held_shards().len() as f64);
    }

    /// Gives shards to whoever comes for them. What is under way in them is finished here: it stays ours while we live.
    async fn hand_over(&self, given: &[ShardLease]) -> StoreResult<()> {
        self.held_shards().hand_over(given);
        {
            let mut window = self.window();
            given.iter().for_each(|shard_lease| window.close(shard_lease.shard));
        }
        self.in_time(self.store.release(self.node, given)).await?;
        metrics::counter!("timer_shards_handed_over_total").increment(given.len() as u64);
        metrics::gauge!("timer_shards_owned").set(self.held_shards().len() as f64);
        tracing::info!(shards = given.len(), "handed shards over");
        Ok(())
    }

    /// The node is about to stop: from now on it only finishes what is under way. Its shards go to others at once.
    pub async fn leave(&self) -> StoreResult<()> {
        self.leaving.store(true, Ordering::Relaxed);
        self.beat_once().await?;
        Ok(())
    }

    /// Nothing is under way any more: the node lives no longer.
    pub async fn depart(&self) -> StoreResult<()> {
        let held = self.held_shards().all();
        self.held_shards().hand_over(&held);
        self.store.leave(self.node).await
    }

    /// Whether a call for a timer that was claimed under this shard lease may be made now. While the lease or the clock is in doubt this
    /// waits for a heartbeat to tell; `false` means that the timer may be in other hands, or that the clock is wrong.
    pub async fn may_send(&self, shard_lease: ShardLease) -> bool {
        loop {
            let renewed = self.renewed.notified();
            let (monotonic, clock_check) = (self.clock.monotonic(), *self.clock_check());
            {
                let held_shards = self.held_shards();
                if clock_check.is_wrong() || !held_shards.owns_claims_of(shard_lease) {
                    return false;
                }
                // A machine that was suspended has a monotonic clock that knows nothing of it, and a wall clock that does.
                if held_shards.is_safe(monotonic) && clock_check.may_fire_at(self.clock.now(), monotonic) {
                    return true;
                }
            }
            renewed.await;
        }
    }

    pub(crate) fn shard_leases(&self) -> Vec<ShardLease> {
        self.held_shards().all()
    }

    /// Whether what is due at `now`, which this clock has just said, may be claimed.
    pub(crate) fn may_claim(&self, now: Timestamp) -> bool {
        let monotonic = self.clock.monotonic();
        // One lock after the other, never both.
        let clock_check = *self.clock_check();
        clock_check.may_fire_at(now, monotonic) && self.held_shards().may_claim(monotonic)
    }
}
