//! Open files. A connection is one to the system, which often starts a program with 1,024 of them allowed, and lets it have more
//! if it asks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For everything that is neither a call nor a request: the database, the log, NATS, lookups.
const OTHERS: u64 = 64;
/// Fewer calls at once would make the service useless; if even they do not fit, some wait.
const CALLS_MIN: u64 = 16;

/// How many open files callbacks may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callbacks {
    pub calls: usize,
    /// Connections that are kept for the next call.
    pub idle: usize,
}

/// Asks for all that may be had: calls, requests and connections that are kept for the next call come to some 5,100. Returns how many
/// are allowed.
pub fn allow_many() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current.unwrap_or(u64::MAX);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(error) => {
            tracing::warn!(%error, allowed = current, "no more open files are allowed");
            current.unwrap_or(u64::MAX)
        }
    }
}

/// Of so many open files, one half is for calls, a quarter for connections that wait for one, and the rest for requests.
pub fn for_callbacks(allowed: u64) -> Callbacks {
    let shared = allowed.saturating_sub(OTHERS);
    let count = |files: u64| usize::try_from(files).unwrap_or(usize::MAX);
    Callbacks { calls: count((shared / 2).max(CALLS_MIN)), idle: count(shared / 4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_shared_between_calls_and_everything_else() {
        for (allowed, calls, idle) in [(0, 16, 0), (64, 16, 0), (256, 96, 48), (1024, 480, 240), (4160, 2048, 1024)] {
            assert_eq!(for_callbacks(allowed), Callbacks { calls, idle }, "{allowed}");
        }
        assert!(for_callbacks(u64::MAX).calls > 1_000_000);
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
