//! Many nodes, one database and everything that can go wrong between them, in one thread and in simulated time.
//!
//! ```text
//!   callers ──▶ commands ─┐
//!                         ├─▶ wire ──▶ faults ──▶ witness ──▶ the model of the database
//!   pipeline, scheduler ──┘  (gate)   (chance)      │
//!        └──▶ sender (gate) ──▶ receivers ──────────┴──▶ ledger: was every step allowed?
//! ```
//!
//! The pipeline, the scheduler and the commands are the real ones. Everything else follows from a seed, so that whatever is found
//! can be looked at again: `SIM_SEED=123 cargo test -p engine --test simulation one_seed -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "a test may stop where it is")]

mod client;
mod clock;
mod dice;
mod gate;
mod ledger;
mod nemesis;
mod node;
mod plan;
mod planted;
mod receiver;
mod seeds;
mod verdict;
mod wire;
mod witness;
mod world;
