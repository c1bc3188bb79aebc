//! Where the database is, and how a session with it is set up.

use std::{fmt, str::FromStr};

use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use crate::open_error::OpenError;

/// Where the database is.
#[derive(Clone)]
pub enum PostgresOptions {
    /// `postgres://user:password@host:port/database?sslmode=…`, special characters percent-encoded.
    Url(String),
    /// The same in parts, each as it is: a password may have any characters.
    Parts { host: String, port: u16, user: String, password: Option<String>, database: String },
}

/// Never shows a password, nor a URL, which may hold one.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(_) => f.write_str("Url(…)"),
            Self::Parts { host, port, user, password: _, database } => f
                .debug_struct("Parts")
                .field("host", host)
                .field("port", port)
                .field("user", user)
                .field("database", database)
                .finish_non_exhaustive(),
        }
    }
}

const ADVICE: &str =
    "write it as postgres://user:password@host:port/database and percent-encode special characters, or give its parts";

impl PostgresOptions {
    pub(crate) fn connect_options(&self) -> Result<PgConnectOptions, OpenError> {
        let options = match self {
            Self::Url(url) => parse_url(url)?,
            Self::Parts { host, port, user, password, database } => {
                let options = PgConnectOptions::new().host(host).port(*port).username(user).database(database);
                match password {
                    Some(password) => options.password(password),
                    None => options,
                }
            }
        };
        // Each statement would be an event of its own; failures are reported where they matter.
        Ok(options.application_name("timer").disable_statement_logging().options(EVERY_SESSION))
    }
}

fn parse_url(url: &str) -> Result<PgConnectOptions, OpenError> {
    let refuse = |why: &str| OpenError::Address(format!("{why}; {ADVICE}"));
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(refuse("it is no URL"));
    };
    if !matches!(scheme, "postgres" | "postgresql") {
        return Err(refuse("it does not begin with postgres://"));
    }
    // A raw `/`, `?` or `#` in a password ends the host part early, and the rest of the password would turn up as a host or
    // database, in messages too.
    let after_authority = rest.find(['/', '?', '#']).map_or("", |end| &rest[end..]);
    if after_authority.contains('@') {
        return Err(refuse("it has an @ after its host"));
    }
    // The parser's own words can quote what it read.
    PgConnectOptions::from_str(url).map_err(|_| refuse("it cannot be understood"))
}

/// Holds in every session, whichever call uses it.
const EVERY_SESSION: [(&str, &str); 10] = [
    // The statements count on seeing what other sessions have committed meanwhile.
    ("default_transaction_isolation", "read committed"),
    ("jit", "off"),
    // A page of 250 timers is too little for several processes: to start them takes longer, and each reads ahead. What is large, statistics
    // and counts, has a budget, and leaves the other processors to those who wait for less.
    ("max_parallel_workers_per_gather", "0"),
    ("client_min_messages", "warning"),
    ("lock_timeout", "3s"),
    ("idle_in_transaction_session_timeout", "10s"),
    // The server finds out that this process is gone, and lets go of what it held.
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "20s"),
];

/// For statements that reach every row through its key. A plan made while a table is small must still be right when it holds
/// millions a minute later, before the server has counted them; so nothing is left to choose.
///
/// That is also why the statements look many rows up with `key = ANY (ARRAY[wanted])`, where `key = wanted` would mean the same.
/// The planner takes a plain equality for a reason to read the whole index in its order, and does so when it has counted no
/// rows: in a table that was emptied and is filled again, every look-up would then walk over all that is new. Where a row of `due` is
/// found through its definition, a sub-select with `OFFSET 0` does the same: it is planned by itself, with everything known.
pub(crate) const KEYED_STATEMENTS: [(&str, &str); 6] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_sort", "off"),
    ("plan_cache_mode", "force_generic_plan"),
];

/// For statements that walk along an index in its order and look each row up elsewhere by its key. The planner may pick the index;
/// it must not read a whole table because it believes that little is in it.
pub(crate) const ORDERED_STATEMENTS: [(&str, &str); 5] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_custom_plan"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<PgConnectOptions, OpenError> {
        PostgresOptions::Url(text.to_owned()).connect_options()
    }

    #[test]
    fn a_url_is_taken_apart() {
        let options = url("postgres://me:p%40ss@db.example:6000/timers?sslmode=require").unwrap();
        assert_eq!((options.get_host(), options.get_port()), ("db.example", 6000));
        assert_eq!((options.get_username(), options.get_database()), ("me", Some("timers")));
        assert_eq!(options.get_application_name(), Some("timer"));
    }

    #[test]
    fn a_url_that_is_refused_is_never_repeated() {
        for text in [
            "s3cret",
            "mysql://u:s3cret@h/db",
            "postgres://u:s3/cret@h/db",
            "postgres://u:s3?cret@h/db",
            "postgres://u:s3#cret@h/db",
            "postgres://u:s3cret:x@h:port/db",
            "postgres://u:p@h/db?sslmode=s3cret",
        ] {
            let complaint = url(text).unwrap_err().to_string();
            assert!(!complaint.contains("s3") && !complaint.contains("cret"), "{text}: {complaint}");
            assert!(complaint.contains("percent-encode"), "{complaint}");
        }
    }

    #[test]
    fn options_can_be_printed_without_the_password() {
        let parts = PostgresOptions::Parts {
            host: "h".to_owned(),
            port: 1,
            user: "u".to_owned(),
            password: Some("s3cret".to_owned()),
            database: "d".to_owned(),
        };
        let printed = format!("{parts:?} {:?}", PostgresOptions::Url("postgres://u:s3cret@h/d".to_owned()));
        assert!(!printed.contains("s3cret"), "{printed}");
    }
}
