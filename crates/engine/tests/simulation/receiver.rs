use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use delivery::{Attempted, Failure, FailureKind, Outcome, Shortage};
use domain::{Clock, Span, Timer, TimerId};
use store::NodeId;

use super::{
    clock::{NodeClock, TrueClock},
    dice::Dice,
    gate::Gate,
    ledger::{Arrival, Ledger, Reply},
};
use engine::Deliver;

/// The receivers. How each of them behaves follows from the seed.
pub struct Receivers {
    pub seed: u64,
    pub clock: TrueClock,
    pub ledger: Arc<Ledger>,
    /// From now on every receiver answers at once, and well.
    pub are_well: AtomicBool,
}

struct Planned {
    takes: Duration,
    outcome: Outcome,
}

impl Receivers {
    /// Whether the node that is about to call finds that it has nothing left to call with.
    fn is_short(&self, id: TimerId) -> bool {
        let mut dice = Dice::new(self.seed ^ self.clock.now().as_micros().cast_unsigned(), id.as_uuid().as_u128() as u64);
        !self.are_well.load(Ordering::Relaxed) && dice.below(20) == 0
    }

    /// What the receiver of this timer does when it is called for the `nth` time, counted from 0.
    fn plan(&self, id: TimerId, nth: usize) -> Planned {
        let mut dice = Dice::new(self.seed, id.as_uuid().as_u128() as u64);
        let (kind, times) = (dice.below(10), dice.below(4) as usize);
        let quick = dice.millis(1, 200);
        let failed = || Outcome::Failed(Failure::new(FailureKind::Status(503), "the receiver answered 503"));
        if self.are_well.load(Ordering::Relaxed) {
            return Planned { takes: Duration::from_millis(5), outcome: Outcome::Delivered };
        }
        match kind {
            // Fails a few times.
            0 | 1 if nth < times => Planned { takes: quick, outcome: failed() },
            2 => Planned { takes: quick, outcome: failed() },
            // Hangs at first.
            3 if nth < times => Planned { takes: dice.millis(2_000, 20_000), outcome: failed() },
            4 if nth == 0 => Planned { takes: dice.millis(2_000, 20_000), outcome: Outcome::Delivered },
            // Wants to be called again.
            5 if nth < times => {
                let at = self.clock.now().saturating_add(Span::from_millis(500 + 7_000 * times as u32));
                Planned { takes: quick, outcome: Outcome::Rescheduled { at } }
            }
            _ => Planned { takes: quick, outcome: Outcome::Delivered },
        }
    }
}

/// The way from one node to the receivers.
pub struct Sender {
    pub node: NodeId,
    pub gate: Arc<Gate>,
    pub clock: Arc<NodeClock>,
    pub receivers: Arc<Receivers>,
}

impl Deliver for Sender {
    type Prepared = ();

    /// A pause here leaves time to lose the shard before the last look.
    async fn prepare(&self, _: &Timer) {
        self.gate.pass().await;
    }

    async fn attempt(&self, timer: &Timer, attempt: u32, (): ()) -> Attempted {
        let was_held_up = self.gate.pass().await;
        if self.receivers.is_short(timer.id()) {
            return Attempted { outcome: Outcome::NotAttempted { reason: Shortage::Descriptors }, record: None, trace: None };
        }
        let ledger = &self.receivers.ledger;
        let Planned { takes, outcome } = self.receivers.plan(timer.id(), ledger.calls_of(timer.id()));
        let reply = match outcome {
            Outcome::Delivered => Reply::Delivered,
            Outcome::Rescheduled { .. } => Reply::Rescheduled,
            Outcome::Failed(_) | Outcome::NotAttempted { .. } => Reply::Failed,
        };
        let arrival = Arrival { node: self.node, node_now: self.clock.now(), was_held_up, timer, attempt };
        let call = ledger.called(&arrival, reply);
        tokio::time::sleep(takes).await;
        ledger.answered(call);
        self.gate.pass().await;
        Attempted { outcome, record: None, trace: None }
    }
}
