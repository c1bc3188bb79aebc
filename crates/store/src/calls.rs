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
                count(filter: &Filter, budget: Duration) -> Count, Count, reads;
                update(changed: &Timer, now: Timestamp) -> Changed, Update, writes;
                cancel(id: TimerId, expected: Option<u32>, now: Timestamp) -> Changed, Cancel, writes;
                cancel_all(ids: &[TimerId], now: Timestamp) -> Vec<bool>, CancelAll, writes;
                reopen(id: TimerId, expected: Option<u32>, now: Timestamp) -> Changed, Reopen, writes;
                revive(changed: &Timer, now: Timestamp) -> Changed, Revive, writes;
                count_group(namespace: &Namespace, group: &Group) -> GroupCount, CountGroup, reads;
                group_members(namespace: &Namespace, group: &Group, after: Option<TimerId>, limit: usize) -> Vec<TimerId>, GroupMembers, reads;
                pause(id: TimerId, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> Changed, Pause, writes;
                resume(id: TimerId, expected: Option<u32>, missed: Missed, now: Timestamp) -> Changed, Resume, writes;
                attempts(id: TimerId) -> Vec<Attempt>, Attempts, reads;
            }
            BulkStore {
                change_all(action: &BulkAction, items: &[BulkItem], progress: Option<&Progress>, now: Timestamp) -> Option<Vec<BulkChange>>, ChangeAll, writes;
                add_operation(operation: &BulkOperation, running_max: usize) -> bool, AddOperation, writes;
                operation(id: OperationId) -> Option<BulkOperation>, Operation, reads;
                operations(before: Option<OperationId>, limit: usize) -> Vec<BulkOperation>, Operations, reads;
                take_operation(lease: Span) -> Option<BulkOperation>, TakeOperation, writes;
                finish_operation(id: OperationId, epoch: Option<Epoch>, state: OperationState, error: Option<&str>, now: Timestamp) -> bool, FinishOperation, writes;
                purge_operations(before: Timestamp, limit: usize) -> usize, PurgeOperations, writes;
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
            EventStore {
                watermark() -> Watermark, Watermark, reads;
                events(after: Timestamp, until: Timestamp, limit: usize) -> EventPage, Events, reads;
                timers(ids: &[TimerId]) -> Vec<Timer>, Timers, reads;
                attempts_at(of: &[(TimerId, i64)]) -> Vec<Option<Attempt>>, AttemptsAt, reads;
                forget_events(before: Timestamp, limit: usize) -> usize, ForgetEvents, writes;
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
            StatsStore {
                due_counts(query: &DueQuery) -> DueCounts, DueCounts, reads;
                record_stats(stats: &NodeStats) -> (), RecordStats, writes;
                digests(namespaces: &[Namespace], from: i64, to: i64) -> Vec<NodeDigest>, Digests, reads;
                receivers(namespaces: &[Namespace]) -> Vec<NodeReceiver>, Receivers, reads;
                namespace_counts(only: &[Namespace], now: Timestamp, budget: Duration) -> NamespaceCounts, NamespaceCounts, reads;
            }
        }
    };
}

pub(crate) use for_each_call;
