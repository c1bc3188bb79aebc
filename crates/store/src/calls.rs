//! The calls of the contract, listed once: [`Operation`](crate::Operation) and [`Decorator`](crate::Decorator) are made
//! from this list, so that a new call is a sentence in the contract and a line here.

/// Calls the macro `$make` with each part of the contract, and in it one line for each call: its signature, its name as an
/// operation, and whether it writes.
macro_rules! for_each_call {
    ($make:ident) => {
        $make! {
            TimerStore {
                create(batch: Vec<NewTimer>) -> Vec<Created>, Create, writes;
                get(id: TimerId) -> Option<Timer>, Get, reads;
                list(query: &ListQuery) -> Page, List, reads;
                count(filter: &Filter) -> Count, Count, reads;
                update(changed: &Timer, now: Timestamp) -> Changed, Update, writes;
                cancel(id: TimerId, now: Timestamp) -> Changed, Cancel, writes;
                cancel_all(ids: &[TimerId], now: Timestamp) -> Vec<bool>, CancelAll, writes;
                reopen(id: TimerId, now: Timestamp) -> Changed, Reopen, writes;
                revive(changed: &Timer, now: Timestamp) -> Changed, Revive, writes;
                matching(filter: &Filter, after: Option<TimerId>, limit: usize) -> Vec<TimerId>, Matching, reads;
                count_group(namespace: &Namespace, group: &Group) -> GroupCount, CountGroup, reads;
                group_members(namespace: &Namespace, group: &Group, after: Option<TimerId>, limit: usize) -> Vec<TimerId>, GroupMembers, reads;
                metadata(ids: &[TimerId], bytes_max: usize) -> Vec<Option<JsonText>>, Metadata, reads;
                attempts(id: TimerId) -> Vec<Attempt>, Attempts, reads;
            }
            HealthStore {
                ping() -> (), Ping, reads;
                probe() -> (), Probe, reads;
                cluster() -> Cluster, Cluster, reads;
            }
            DueStore {
                due(from: &[ShardCursor], until: Timestamp, limit: usize) -> Vec<DueEntry>, Due, reads;
                claim(claim: &Claim, entries: &[DueEntry]) -> Vec<Claimed>, Claim, writes;
                settle(batch: &[Settlement]) -> Vec<bool>, Settle, writes;
                expired_claims(shard_leases: &[ShardLease], limit: usize) -> Vec<Claimed>, ExpiredClaims, reads;
                purge(before: Timestamp, limit: usize) -> usize, Purge, writes;
            }
            KeyStore {
                add_key(key: &AccessKey) -> bool, AddKey, writes;
                keys() -> Vec<AccessKey>, Keys, reads;
                revoke_key(id: AccessKeyId, now: Timestamp) -> bool, RevokeKey, writes;
            }
            MembershipStore {
                heartbeat(member: &Member, lease: Span) -> HeartbeatReply, Heartbeat, writes;
                acquire(node: NodeId, shards: &[Shard]) -> Vec<ShardLease>, Acquire, writes;
                release(node: NodeId, shard_leases: &[ShardLease]) -> (), Release, writes;
                leave(node: NodeId) -> (), Leave, writes;
                nudge(entries: &[DueEntry]) -> (), Nudge, writes;
                nudged() -> Vec<DueEntry>, Nudged, reads;
            }
        }
    };
}

pub(crate) use for_each_call;
