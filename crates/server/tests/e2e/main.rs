//! The promises of the service, each tried on the real binary: on a real SQLite file and on a real PostgreSQL, from outside,
//! through HTTP and a real NATS server only.
//!
//! ```text
//!   client ──HTTP──▶ timer serve ──HTTP──▶ receiver (records what arrives, and when)
//!                     │  │   ▲
//!          SQLite file, │  │   └─ kill -9, SIGTERM, a clock that jumps
//!           PostgreSQL ─┘  └─NATS─▶ nats-server, or three of them (killed and paused, too)
//! ```
//!
//! One binary, so that it is linked once, and so that its tests share a PostgreSQL. How many of them run at once is said in
//! `rig::machine`, what limits of time mean in `rig::tolerance`; what is left to chance is repeated with `FAULT_SEED` (see
//! `rig::chance`). The measurements they print are shown by `cargo test -p server --test e2e -- --nocapture`.
#![expect(clippy::expect_used, reason = "helpers of tests are tests")]
#![expect(clippy::print_stdout, reason = "measurements are for people to read")]

mod rig;

mod api_abuse;
mod backup;
mod backup_under_load;
mod bad_requests;
mod behind_a_proxy;
#[cfg(feature = "bench")]
mod bench;
mod broker_cluster;
mod broker_commands;
mod broker_crash;
mod broker_database_outage;
mod broker_dead_letters;
mod broker_outage;
mod broker_stopping;
mod broker_throughput;
mod bulk;
mod callbacks;
mod changes;
mod clock_steps;
mod command_line;
mod compare_and_set;
mod configuration;
mod conflicts;
mod console;
mod crash;
mod damaged_rows;
mod database_file;
mod database_outage;
mod dev_tools;
mod disk_full;
mod downtime;
mod events;
mod expiry;
mod fair_shares;
mod faults;
mod floods;
mod follow_ups;
mod groups;
mod history;
mod isolation;
mod keys;
mod large_payloads;
mod lateness;
mod log_reader;
mod metrics;
mod million;
mod namespaces;
mod nats_callbacks;
mod nats_configuration;
mod nats_failures;
mod nats_kills;
mod nodes;
mod on_time;
mod one_key_many_clients;
mod openapi_contract;
mod pauses;
mod platform_subjects;
mod postpone;
mod purge_under_load;
mod race;
mod rate_limit;
mod read_only;
mod requests;
mod retries;
mod rust_client;
mod search;
mod shortage;
mod signatures;
mod slow_clients;
mod stats;
mod stopping;
mod tenants;
mod terminal;
mod traces;
mod trial;
mod unrecorded;
