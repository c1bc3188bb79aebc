//! Open files. A connection is one to the system, which often starts a program with 1,024 of them allowed, and lets it have more
//! if it asks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The open files of everything that is neither a call nor a request: the database, the log, NATS, lookups.
const RESERVED: u64 = 64;
/// Fewer calls at once would make the service useless; if even they do not fit, some wait.
const CALLS_MIN: u64 = 16;
/// With fewer connections there is no use in an API.
const API_MIN: usize = 8;

/// How the open files that the process may have are shared. Whatever clients do, calls and the store have their part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    pub calls: usize,
    /// Idle connections, which wait for the next call.
    pub idle: usize,
    /// Connections of clients, those in reserve for probes not counted.
    pub api: usize,
}

/// Asks for all that may be had: calls, requests and idle connections come to some 5,100. Returns how many are allowed.
pub fn allow_many() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current.unwrap_or(u64::MAX);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(error) => {
            tracing::warn!(%error, allowed = current, "the soft limit of open files could not be raised to the hard limit");
            current.unwrap_or(u64::MAX)
        }
    }
}

/// Divides the allowed open files, less the reserve: half for calls, a quarter for idle connections, and a quarter for the API.
pub fn share(allowed: u64) -> Shares {
    let shared = allowed.saturating_sub(RESERVED);
    let count = |files: u64| usize::try_from(files).unwrap_or(usize::MAX);
    let api = count(shared / 4).saturating_sub(api::RESERVED_CONNECTIONS_MAX);
    Shares {
        calls: count((shared / 2).max(CALLS_MIN)),
        idle: count(shared / 4),
        api: api.clamp(API_MIN, api::Limits::default().connections_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_shared_between_calls_idle_connections_and_the_api() {
        for (allowed, calls, idle, api) in
            [(0, 16, 0, 8), (64, 16, 0, 8), (256, 96, 48, 32), (1024, 480, 240, 224), (4224, 2080, 1040, 1024)]
        {
            assert_eq!(share(allowed), Shares { calls, idle, api }, "{allowed}");
        }
        let unlimited = share(u64::MAX);
        assert!(unlimited.calls > 1_000_000 && unlimited.api == 1024);
    }
}
