//! The other nodes that may be coming back: when the database was away for longer than a lease, all of them seem dead to the
//! first that returns.

use std::time::Duration;

/// What this node remembers of the other nodes from before it was away. A pure structure: the monotonic time is an argument.
#[derive(Debug, Default)]
pub struct RejoinGrace {
    /// How many lived when the node last looked.
    known: usize,
    /// The time until which it takes nothing from other nodes, unless this number of nodes is alive again before then.
    waits: Option<(Duration, usize)>,
}

impl RejoinGrace {
    /// Notes how many members are alive, by an answer that came at `answered`. `was_away` says that the node's own lease had run
    /// out by then: nodes whose lease has run out, too, get a third of one to come back before their shards are taken.
    pub fn note(&mut self, was_away: bool, members: usize, answered: Duration, lease: Duration) {
        if was_away && members < self.known {
            self.waits = Some((answered + lease / 3, self.known));
        }
        if self.waits.is_some_and(|(until, awaited)| answered >= until || members >= awaited) {
            self.waits = None;
        }
        self.known = members;
    }

    /// Whether shards of nodes that seem dead may be taken.
    pub const fn has_ended(&self) -> bool {
        self.waits.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_that_comes_back_waits_a_little_for_the_other_nodes() {
        const LEASE: Duration = Duration::from_millis(3_000);
        let mut rejoin_grace = RejoinGrace::default();
        // When it was answered (in milliseconds), whether the node was away before, how many live, and whether it may take shards.
        for (answered, was_away, members, may_take) in [
            (0, false, 1, true),
            (250, false, 3, true),
            // Other nodes die one by one while this node lives: that is what taking over is for.
            (500, false, 2, true),
            (750, false, 3, true),
            // The database was away, and this node is the first to return.
            (9_000, true, 1, false),
            (9_250, false, 2, false),
            (9_500, false, 3, true),
            // Again, and one does not come back.
            (20_000, true, 2, false),
            (20_999, false, 2, false),
            (21_000, false, 2, true),
            // Paused, and all other nodes lived on.
            (30_000, true, 2, true),
        ] {
            rejoin_grace.note(was_away, members, Duration::from_millis(answered), LEASE);
            assert_eq!(rejoin_grace.has_ended(), may_take, "at {answered}");
        }
    }
}
