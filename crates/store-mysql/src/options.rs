//! Where the database is, and how a session with it is set up.

use std::{fmt, str::FromStr};

use sqlx::{ConnectOptions, mysql::MySqlConnectOptions};

use crate::open_error::OpenError;

/// Where the database is: `mysql://user:password@host:port/database?ssl-mode=…`, or the same with `mariadb://`; special characters
/// percent-encoded.
#[derive(Clone)]
pub struct MysqlOptions(pub String);

/// Never shows the URL, which may hold a password.
impl fmt::Debug for MysqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MysqlOptions(…)")
    }
}

const ADVICE: &str = "write it as mysql://user:password@host:port/database and percent-encode special characters";

/// How many prepared statements a session keeps: all that there are, and those of a few lengths of batches.
const STATEMENTS_KEPT: usize = 200;

impl MysqlOptions {
    pub(crate) fn connect_options(&self) -> Result<MySqlConnectOptions, OpenError> {
        let options = parse_url(&self.0)?;
        // Each statement would be an event of its own; failures are reported where they matter. The mode of the session is set below.
        Ok(options
            .disable_statement_logging()
            .statement_cache_capacity(STATEMENTS_KEPT)
            .pipes_as_concat(false)
            .no_engine_substitution(false))
    }
}

fn parse_url(url: &str) -> Result<MySqlConnectOptions, OpenError> {
    let refuse = |why: &str| OpenError::Address(format!("{why}; {ADVICE}"));
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(refuse("it is no URL"));
    };
    if !matches!(scheme, "mysql" | "mariadb") {
        return Err(refuse("it does not begin with mysql:// or mariadb://"));
    }
    // A raw `/`, `?` or `#` in a password ends the host part early, and the rest of the password would turn up as a host or
    // database, in messages too.
    let after_authority = rest.find(['/', '?', '#']).map_or("", |end| &rest[end..]);
    if after_authority.contains('@') {
        return Err(refuse("it has an @ after its host"));
    }
    // The parser's own words can quote what it read.
    let options = MySqlConnectOptions::from_str(url).map_err(|_| refuse("it cannot be understood"))?;
    if options.get_database().is_none_or(str::is_empty) {
        return Err(refuse("it names no database"));
    }
    Ok(options)
}

/// Holds in every session, whichever call uses it. The statements count on seeing what other sessions have committed meanwhile, and on
/// values that are refused where they do not fit. A transaction that is idle for long is rolled back, because the locks of a process that
/// is gone would be waited for: MariaDB has a limit for that, and TiDB (`tidb.rs`); MySQL has one for sessions, whatever they were doing last,
/// and the pool opens another one in its place.
pub const EVERY_SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO', autocommit = 1 \
     /*M!100300 , idle_transaction_timeout = 10 */ /*!80000 , wait_timeout = 10 */";

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<MySqlConnectOptions, OpenError> {
        MysqlOptions(text.to_owned()).connect_options()
    }

    #[test]
    fn a_url_is_taken_apart() {
        for scheme in ["mysql", "mariadb"] {
            let options = url(&format!("{scheme}://me:p%40ss@db.example:6000/timers?ssl-mode=required")).unwrap();
            assert_eq!((options.get_host(), options.get_port()), ("db.example", 6000));
            assert_eq!((options.get_username(), options.get_database()), ("me", Some("timers")));
        }
    }

    #[test]
    fn a_url_that_is_refused_is_never_repeated() {
        for text in [
            "s3cret",
            "postgres://u:s3cret@h/db",
            "mysql://u:s3/cret@h/db",
            "mysql://u:s3?cret@h/db",
            "mysql://u:s3#cret@h/db",
            "mysql://u:s3cret:x@h:port/db",
            "mysql://u:s3cret@h",
            "mysql://u:p@h/db?ssl-mode=s3cret",
        ] {
            let complaint = url(text).unwrap_err().to_string();
            assert!(!complaint.contains("s3") && !complaint.contains("cret"), "{text}: {complaint}");
            assert!(complaint.contains("percent-encode"), "{complaint}");
        }
    }

    #[test]
    fn options_can_be_printed_without_the_password() {
        let printed = format!("{:?}", MysqlOptions("mysql://u:s3cret@h/d".to_owned()));
        assert!(!printed.contains("s3cret"), "{printed}");
    }
}
