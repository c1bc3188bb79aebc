//! Open files. A connection is one to the system, which often starts a program with 1,024 of them allowed, and lets it have more
//! if it asks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Asks for all that may be had: calls, requests and connections that are kept for the next call come to some 5,100.
pub fn allow_many() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, allowed = current, "no more open files are allowed");
    }
}
