//! Which nodes live, by this process's own monotonic clock: a database of this kind has no clock that is one for all.
//!
//! Every heartbeat writes the node's row anew. An observer sees that the row has another version than before, and counts the lease
//! from the moment at which it saw that. The node itself counts it from before it wrote the row, which is earlier: so no observer takes a
//! node for dead that may still believe that it lives, however much their wall clocks differ.

use std::{collections::BTreeMap, time::Duration};

use domain::{Span, Timestamp};
use store::NodeId;

use crate::Version;

/// What this process has seen of the nodes.
#[derive(Debug, Default)]
pub struct Liveness {
    nodes: BTreeMap<NodeId, Seen>,
    /// When the last reading began, by both clocks of this machine.
    last_read: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    version: Version,
    lives_until: Duration,
    /// How far its wall clock is ahead of this one's, as far as that is certain.
    ahead_micros: i64,
}

/// One row of a node, as it was read.
#[derive(Debug, Clone, Copy)]
pub struct Sighting {
    pub node: NodeId,
    pub version: Version,
    pub lease: Span,
    /// When it was written, by the clock of its node.
    pub written_at: Timestamp,
}

/// When a reading of all nodes began and ended, by the clocks of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    pub began_at: Timestamp,
    pub ended: Duration,
    pub ended_at: Timestamp,
}

impl Liveness {
    /// This process has sent a heartbeat itself: its lease counts from before that.
    pub fn sent(&mut self, node: NodeId, version: Version, began: Duration, lease: Span) {
        let lives_until = began.saturating_add(lease.as_duration());
        self.nodes.insert(node, Seen { version, lives_until, ahead_micros: 0 });
    }

    /// Notes what was read. Those that are gone are forgotten.
    pub fn note(&mut self, sightings: &[Sighting], reading: Reading) {
        self.nodes.retain(|node, _| sightings.iter().any(|sighting| sighting.node == *node));
        for sighting in sightings {
            let known = self.nodes.get(&sighting.node);
            if known.is_some_and(|seen| seen.version == sighting.version) {
                continue;
            }
            // It was written after the last reading began, or it would have been seen then, and before this one ended.
            let since = known.and(self.last_read);
            let lives_until = match sighting.lease {
                Span::ZERO => Duration::ZERO,
                lease => reading.ended.saturating_add(lease.as_duration()),
            };
            let ahead_micros = ahead(sighting.written_at, since, reading.ended_at);
            self.nodes.insert(sighting.node, Seen { version: sighting.version, lives_until, ahead_micros });
        }
        self.last_read = Some(reading.began_at);
    }

    /// Whether a node lives, as a reading shows that began then.
    pub fn lives(&self, node: NodeId, began: Duration) -> bool {
        self.nodes.get(&node).is_some_and(|seen| began < seen.lives_until)
    }

    /// How far the clocks of the living nodes are ahead of this one: the median, this one's own included.
    pub fn ahead_micros(&self, began: Duration) -> i64 {
        let mut all: Vec<i64> =
            self.nodes.values().filter(|seen| began < seen.lives_until).map(|seen| seen.ahead_micros).collect();
        all.sort_unstable();
        let middle = all.len() / 2;
        match all.len() {
            0 => 0,
            // Of two that disagree neither is right.
            even if even % 2 == 0 => all[middle - 1].midpoint(all[middle]),
            _ => all[middle],
        }
    }
}

/// How far a clock is ahead that said `written_at` at a moment between `since` and `until` of this one: zero where it may agree.
const fn ahead(written_at: Timestamp, since: Option<Timestamp>, until: Timestamp) -> i64 {
    let at_least = written_at.as_micros().saturating_sub(until.as_micros());
    if at_least > 0 {
        return at_least;
    }
    match since {
        Some(since) => {
            let at_most = written_at.as_micros().saturating_sub(since.as_micros());
            if at_most < 0 { at_most } else { 0 }
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(7);
    const LEASE: Span = Span::from_secs(3);

    fn sighting(version: u128, written_at: i64) -> Sighting {
        let written_at = Timestamp::from_micros(written_at * 1_000_000);
        Sighting { node: NODE, version: Version(version), lease: LEASE, written_at }
    }

    fn reading(began: u64) -> Reading {
        let at = |secs: u64| Timestamp::from_micros(i64::try_from(secs).unwrap() * 1_000_000);
        Reading { began_at: at(began), ended: Duration::from_secs(began + 1), ended_at: at(began + 1) }
    }

    #[test]
    fn a_node_lives_for_a_lease_from_when_its_heartbeat_was_seen() {
        let mut liveness = Liveness::default();
        let lives = |liveness: &Liveness, secs| liveness.lives(NODE, Duration::from_secs(secs));
        liveness.note(&[sighting(1, 100)], reading(100));
        assert!(lives(&liveness, 103) && !lives(&liveness, 104), "seen at 101");
        liveness.note(&[sighting(1, 100)], reading(103));
        assert!(!lives(&liveness, 104), "the same heartbeat counts once");
        liveness.note(&[sighting(2, 103)], reading(104));
        assert!(lives(&liveness, 107) && !lives(&liveness, 108), "it lives again");
        liveness.note(&[], reading(105));
        assert!(!lives(&liveness, 105), "it has left");
    }

    #[test]
    fn its_own_heartbeat_counts_from_before_it_was_sent() {
        let mut liveness = Liveness::default();
        liveness.sent(NODE, Version(1), Duration::from_secs(50), LEASE);
        liveness.note(&[sighting(1, 50)], reading(51));
        assert!(liveness.lives(NODE, Duration::from_millis(52_999)));
        assert!(!liveness.lives(NODE, Duration::from_secs(53)));
        liveness.sent(NODE, Version(2), Duration::from_secs(60), Span::ZERO);
        assert!(!liveness.lives(NODE, Duration::from_secs(60)));
    }

    #[test]
    fn a_clock_is_ahead_as_far_as_that_is_certain() {
        let mut liveness = Liveness::default();
        liveness.note(&[sighting(1, 50)], reading(100));
        assert_eq!(liveness.ahead_micros(Duration::ZERO), 0, "a row that was there before says nothing");
        liveness.note(&[sighting(2, 50)], reading(102));
        assert_eq!(liveness.ahead_micros(Duration::ZERO), -50_000_000, "written after 100 by this clock");
        liveness.note(&[sighting(3, 104)], reading(104));
        assert_eq!(liveness.ahead_micros(Duration::ZERO), 0);
        liveness.note(&[sighting(4, 126)], reading(105));
        assert_eq!(liveness.ahead_micros(Duration::ZERO), 20_000_000, "written before 106 by this clock");
        liveness.sent(NodeId(1), Version(9), Duration::from_secs(105), LEASE);
        assert_eq!(liveness.ahead_micros(Duration::ZERO), 10_000_000);
    }
}
