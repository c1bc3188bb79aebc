//! Against real sockets on the loopback interface.
//!
//! That proxies in the environment are ignored needs no test: nothing here reads the environment, and the client has no notion of a
//! proxy.

mod answers;
mod arrival;
mod faults;
mod floods;
mod guard;
mod names;
mod receiver;
mod records;
mod tls;

use std::{io, net::IpAddr, sync::Arc};

use domain::{ManualClock, Timestamp};
use rustls::RootCertStore;

pub(super) use self::receiver::Receiver;
use super::{
    lookups::Lookups,
    names::{Lookup, Names, SystemNames},
};
use crate::{Config, Deliverer, Egress, Failure, FailureKind, Outcome, Prepared, timers};

/// The second attempt of a timer that was due at noon is made half a second later.
fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::parse("now", "2030-01-31T12:00:00.75Z").unwrap()))
}

fn config() -> Config {
    Config { version: "1.2.3".to_owned(), ..Config::default() }
}

fn deliverer() -> Deliverer {
    guarded(Egress::default(), SystemNames)
}

fn guarded(egress: Egress, names: impl Names + 'static) -> Deliverer {
    looking_up(egress, Lookups::new(names))
}

fn looking_up(egress: Egress, lookups: Lookups) -> Deliverer {
    let config = Config { egress, ..config() };
    Deliverer::with_outside(config, clock(), lookups, RootCertStore::empty()).unwrap()
}

async fn call(url: &str, more: &str) -> Outcome {
    deliverer().attempt(&timers::http(url, more), 2, Prepared::default()).await.outcome
}

#[track_caller]
fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?} is no failure"),
    }
}

/// Resolves every name as the function says.
struct Fake<F>(F);

impl<F: Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync> Names for Fake<F> {
    fn lookup(&self, host: String) -> Lookup {
        let found = (self.0)(&host);
        Box::pin(async { found })
    }
}
