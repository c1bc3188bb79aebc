//! What every test here is built from: a real service, real receivers, clients of both kinds, and waiting with a deadline.

mod backend;
mod chance;
mod client;
mod clock;
mod collector;
mod crowd;
mod faketime;
mod link;
mod machine;
mod nats;
mod nodes;
mod python;
mod receiver;
mod scripted;
mod service;
mod tolerance;

use std::{future::Future, time::Duration};

pub use backend::{Backend, Finished, Pending};
pub use chance::{Chance, at_scale, scaled};
pub use client::{Answer, Client, callback_to, stored_at, told_to};
pub use clock::{instant, micros, now, wait_for_wall};
pub use collector::Collector;
pub use crowd::{Crowd, fill};
pub use faketime::FakeTime;
pub use link::{DATABASE_PASSWORD, Link};
pub use machine::{alone, beside_others, heavy};
pub use nats::{
    Account, Bus, COMMAND_SUBJECT, COMMANDS, CONSUMER, DEAD_SUBJECT, EVENTS, Event, Load, Message, Sent, Witness, schedule_timer,
};
pub use nodes::{Cluster, LEASE_MICROS, Nodes, SHARDS, shard_of, wait_until_shared};
pub use python::{beside_the_tests, python};
pub use receiver::{Call, Receiver, Reply};
pub use scripted::{Absent, Act, Exchange, Scripted, http_answer};
pub use service::{API_KEY, Service, timer, with_commands};
pub use tolerance::{by_tier, tolerated};

/// Makes one test of each `async fn(Backend)`, once for every store: `name::on_sqlite` and `name::on_postgres`. With `soak:` before
/// the names, `make soak` runs them and a build does not. With `mariadb too:` there is `name::on_mariadb` as well, with
/// `mariadb in soak:` only `make soak` runs that.
macro_rules! for_each_store {
    (soak: $($name:ident),+ $(,)?) => {
        $(mod $name { $crate::rig::on_each_store!($name, #[ignore = "soak: measures, or takes minutes"]); })+
    };
    (mariadb too: $($name:ident),+ $(,)?) => {
        $(mod $name { $crate::rig::on_mariadb_too!($name,); })+
    };
    (mariadb in soak: $($name:ident),+ $(,)?) => {
        $(mod $name { $crate::rig::on_mariadb_too!($name, #[ignore = "soak: a build has conformance for this"]); })+
    };
    ($($name:ident),+ $(,)?) => {
        $(mod $name { $crate::rig::on_each_store!($name,); })+
    };
}

macro_rules! on_store {
    ($name:ident, $test:ident, $backend:ident, $($tier:tt)*) => {
        $($tier)*
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            super::$name(crate::rig::Backend::$backend()).await;
        }
    };
}
pub(crate) use {backend::on_each_store, backend::on_mariadb_too, for_each_store, on_store};

/// For what blocks the thread, such as starting or stopping a server: the other tasks of the test go on meanwhile.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Looks again and again until there is something to see; fails the test when that takes longer than is tolerated for `limit`.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> T {
    let limit = tolerated(limit);
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(tokio::time::Instant::now() < deadline, "not within {limit:?}: {what}");
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}
