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

/// How many connections the API may have: no more than a quarter of all open files, whatever clients do, so that calls and the store
/// always have the rest.
pub fn connections_max() -> usize {
    share_of_connections(getrlimit(Resource::Nofile).current)
}

fn share_of_connections(allowed: Option<u64>) -> usize {
    let usual = api::Limits::default().connections_max;
    let quarter = allowed.map_or(usize::MAX, |allowed| usize::try_from(allowed / 4).unwrap_or(usize::MAX));
    quarter.saturating_sub(api::RESERVED_CONNECTIONS_MAX).clamp(CONNECTIONS_MIN, usual)
}

/// With fewer there is no use in an API.
const CONNECTIONS_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_takes_a_quarter_of_the_open_files_at_most() {
        for (allowed, connections) in [
            (None, 1024),
            (Some(1_048_576), 1024),
            (Some(4160), 1024),
            (Some(1024), 240),
            (Some(256), 48),
            (Some(64), 8),
            (Some(0), 8),
        ] {
            assert_eq!(share_of_connections(allowed), connections, "{allowed:?}");
        }
    }
}
