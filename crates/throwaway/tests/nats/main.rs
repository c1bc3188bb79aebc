//! The NATS server that tests get: real, their own, and gone afterwards.
#![expect(clippy::expect_used, reason = "helpers of tests are tests")]

mod access;
mod cluster;
mod life;
mod wire;
