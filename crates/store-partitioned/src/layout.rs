//! Where things lie: partitions, keys, and positions in the order of bytes.
//!
//! ```text
//!   timers-<shard>    id ──▶ timer              indexes: standing, created_at, execute_at, group
//!   journal-<shard>   moment, number ──▶ up to a hundred events
//!   shards            shard ──▶ epoch, owner, former owners
//!   nodes             node ──▶ what it says of itself, its lease
//!   keys, operations, stats, nudges, meta
//! ```

use domain::{Destination, Group, Namespace, Shard, TimerId, Timestamp};
use store::{DueEntry, NodeId};
use uuid::Uuid;

use crate::{Index, Partition, held::Held};

/// Where a timer stands in its life: see the functions below.
pub const STANDING: Index = Index::First;
pub const CREATED: Index = Index::Second;
pub const EXECUTE: Index = Index::Third;
pub const GROUP: Index = Index::Fourth;

const PENDING: u8 = 1;
const CLAIMED: u8 = 2;
const ENDED: u8 = 3;

/// The name space (in the sense of RFC 9562) of the hashes of groups.
const GROUPS: Uuid = Uuid::from_u128(0x3a41_7c0d_92b8_4be1_8f5a_5d0e_63c7_11f9);

pub fn timers(shard: Shard) -> Partition {
    Partition::new(format!("timers-{}", shard.0))
}

pub fn journal(shard: Shard) -> Partition {
    Partition::new(format!("journal-{}", shard.0))
}

pub fn shards() -> Partition {
    Partition::new("shards")
}

pub fn nodes() -> Partition {
    Partition::new("nodes")
}

pub fn keys() -> Partition {
    Partition::new("keys")
}

pub fn operations() -> Partition {
    Partition::new("operations")
}

pub fn stats() -> Partition {
    Partition::new("stats")
}

pub fn nudges() -> Partition {
    Partition::new("nudges")
}

pub fn meta() -> Partition {
    Partition::new("meta")
}

pub fn timer_key(id: TimerId) -> Vec<u8> {
    id.as_uuid().as_bytes().to_vec()
}

pub fn timer_id(key: &[u8]) -> Option<TimerId> {
    Uuid::from_slice(key).ok().map(TimerId::from_uuid)
}

pub fn shard_key(shard: Shard) -> Vec<u8> {
    shard.0.to_be_bytes().to_vec()
}

pub fn node_key(node: NodeId) -> Vec<u8> {
    node.0.to_be_bytes().to_vec()
}

/// The number, so that bytes compare as numbers do.
pub const fn ordered(number: i64) -> [u8; 8] {
    (number.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

pub fn number(bytes: &[u8]) -> Option<i64> {
    Some((u64::from_be_bytes(bytes.try_into().ok()?) ^ (1 << 63)).cast_signed())
}

// ── Positions ──────────────────────────────────────────────────────────────────────────────────────────────────

/// Pending: by the time of the next attempt.
pub fn pending(entry: &DueEntry) -> Vec<u8> {
    let mut position = pending_after(entry.at, entry.id);
    position.extend(entry.destination.0.to_be_bytes());
    position
}

/// Before every pending timer that is due then or later.
pub fn pending_from(micros: i64) -> Vec<u8> {
    [&[PENDING][..], &ordered(micros)].concat()
}

fn pending_after(at: Timestamp, id: TimerId) -> Vec<u8> {
    [pending_from(at.as_micros()).as_slice(), id.as_uuid().as_bytes()].concat()
}

/// The range of pending timers after a cursor, up to and including those that are due at `until`.
pub fn pending_range(after: Option<(Timestamp, TimerId)>, until: Timestamp) -> (Vec<u8>, Vec<u8>) {
    let from = match after {
        // Beyond all positions that begin with the cursor: the destination follows it.
        Some((at, id)) => [pending_after(at, id).as_slice(), &[0xff; 9]].concat(),
        None => vec![PENDING],
    };
    // As a number: the last instant has none after it.
    let to = pending_from(until.as_micros().saturating_add(1));
    (from, to)
}

pub fn pending_entry(position: &[u8]) -> Option<DueEntry> {
    let (at, id, destination) = (position.get(1..9)?, position.get(9..25)?, position.get(25..33)?);
    Some(DueEntry {
        at: Timestamp::from_micros(number(at)?),
        id: timer_id(id)?,
        destination: Destination(u64::from_be_bytes(destination.try_into().ok()?)),
    })
}

/// Claimed: by the epoch of the claim, then by the time at which the timer was due, so that what is claimed later lies further on. No
/// other claim has the same position.
pub fn claimed(held: &Held, at: i64, id: TimerId) -> Vec<u8> {
    [&[CLAIMED][..], &ordered(held.epoch), &ordered(at), &ordered(held.lease), &ordered(held.token), id.as_uuid().as_bytes()]
        .concat()
}

pub fn claimed_range() -> (Vec<u8>, Vec<u8>) {
    (vec![CLAIMED], vec![ENDED])
}

/// The epoch, and the length of the lease of the claim.
pub fn claimed_parts(position: &[u8]) -> Option<(i64, i64)> {
    Some((number(position.get(1..9)?)?, number(position.get(17..25)?)?))
}

/// Ended: by the time of the end.
pub fn ended(at: i64, id: TimerId) -> Vec<u8> {
    [&[ENDED][..], &ordered(at), id.as_uuid().as_bytes()].concat()
}

/// What ended from then on, up to before another moment, both in microseconds.
pub fn ended_range(from: i64, before: i64) -> (Vec<u8>, Vec<u8>) {
    let at = |micros: i64| [&[ENDED][..], &ordered(micros)].concat();
    (at(from), at(before))
}

/// The moment of a position in the order of time, after a prefix.
pub fn moment(position: &[u8], prefix: usize) -> Option<Timestamp> {
    Some(Timestamp::from_micros(number(position.get(prefix..prefix + 8)?)?))
}

/// A position in the order of time, then of id: for the indexes by `created_at` and `execute_at`.
pub fn by_time(at: i64, id: TimerId) -> Vec<u8> {
    [&ordered(at)[..], id.as_uuid().as_bytes()].concat()
}

/// A group as a hash, because names may be longer than a key.
pub fn group(namespace: &str, group: &str) -> [u8; 16] {
    *Uuid::new_v5(&GROUPS, format!("{}:{namespace}{group}", namespace.len()).as_bytes()).as_bytes()
}

pub fn group_of(namespace: &Namespace, name: &Group) -> [u8; 16] {
    group(namespace.as_str(), name.as_str())
}

pub fn group_member(namespace: &str, name: &str, id: TimerId) -> Vec<u8> {
    [&group(namespace, name)[..], id.as_uuid().as_bytes()].concat()
}

/// The first bytes after all that begin with these.
pub fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_micros(-5);

    fn entry(at: Timestamp) -> DueEntry {
        DueEntry { at, id: TimerId::LAST.predecessor(), destination: Destination(u64::MAX) }
    }

    #[test]
    fn numbers_keep_their_order_as_bytes() {
        let numbers = [i64::MIN, -7, -1, 0, 1, 255, 256, i64::MAX];
        assert!(numbers.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert!(numbers.iter().all(|n| number(&ordered(*n)) == Some(*n)));
    }

    #[test]
    fn a_pending_position_reads_back_and_lies_in_its_range() {
        let position = pending(&entry(AT));
        assert_eq!(pending_entry(&position), Some(entry(AT)));
        let lies_in = |(from, to): (Vec<u8>, Vec<u8>)| position >= from && position < to;
        assert!(lies_in(pending_range(None, AT)));
        assert!(lies_in(pending_range(None, Timestamp::MAX)));
        assert!(!lies_in(pending_range(None, Timestamp::from_micros(-6))));
        assert!(!lies_in(pending_range(Some((AT, entry(AT).id)), Timestamp::MAX)), "the cursor itself is left out");
        assert!(lies_in(pending_range(Some((AT, entry(AT).id.predecessor())), AT)));
    }

    #[test]
    fn a_prefix_ends_before_what_follows_it() {
        assert_eq!(end_of(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(end_of(&[1, 255]), Some(vec![2]));
        assert_eq!(end_of(&[255]), None);
    }
}
