//! The consumer over a real nats-server.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

mod both_ways;
mod cluster;
mod dead_letters;
mod outages;
mod restarts;
mod rig;
mod settings;
mod unreadable;
