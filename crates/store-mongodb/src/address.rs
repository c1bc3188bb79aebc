//! Where the database is, and what is to be known before it is opened.

use std::fmt;

use mongodb::options::{Acknowledgment, ConnectionString};

const ADVICE: &str = "write it as mongodb://user:password@host:port/database and percent-encode special characters";
/// The number of shards of a new database, unless the address gives another.
const SHARDS: u16 = 64;
const SHARDS_MAX: u16 = 4_096;

/// `mongodb://user:password@host:port,host:port/database?replicaSet=…`, or `mongodb+srv://user:password@host/database`, with the parameters
/// of MongoDB and one of our own: `shards`, into how many partitions the timers of a new database are divided.
#[derive(Clone)]
pub struct Address {
    /// Without what is ours.
    pub(crate) connection: ConnectionString,
    pub(crate) database: String,
    shards: u16,
}

/// Never shows the URL, which may hold a password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(…)")
    }
}

impl Address {
    /// Reads a URL. What is wrong with it is said without showing any of its values.
    pub fn parse(url: &str) -> Result<Self, String> {
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        // The parser's own words can quote what it read.
        let connection = ConnectionString::parse(place).map_err(|_| format!("it cannot be understood; {ADVICE}"))?;
        let database = connection.default_database.clone().ok_or_else(|| format!("it names no database; {ADVICE}"))?;
        let (own, others): (Vec<&str>, Vec<&str>) = query
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .partition(|parameter| name_of(parameter).eq_ignore_ascii_case("shards"));
        let shards = match own.as_slice() {
            [] => SHARDS,
            [one] => shards(one)?,
            _ => return Err("its parameter shards is there twice".to_owned()),
        };
        let connection = with_parameters(place, &others)?;
        if let Some(Acknowledgment::Nodes(0)) = connection.write_concern.as_ref().and_then(|concern| concern.w.as_ref()) {
            return Err("its parameter w must not be 0: no write would be answered".to_owned());
        }
        Ok(Self { connection, database, shards })
    }

    /// Into how many partitions the timers of a new database are divided. One that is there keeps its own number.
    pub const fn shards(&self) -> u16 {
        self.shards
    }
}

fn name_of(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or_default()
}

fn shards(parameter: &str) -> Result<u16, String> {
    let number = parameter.split_once('=').and_then(|(_, value)| value.parse().ok());
    let number = number.filter(|number| (1..=SHARDS_MAX).contains(number));
    number.ok_or_else(|| format!("its parameter shards must be a number from 1 to {SHARDS_MAX}"))
}

fn with_parameters(place: &str, parameters: &[&str]) -> Result<ConnectionString, String> {
    // The driver wants a slash before the question mark; there is one, because the database is named.
    let parse = |parameters: &[&str]| ConnectionString::parse(format!("{place}?{}", parameters.join("&")));
    if parameters.is_empty() {
        return ConnectionString::parse(place).map_err(|_| format!("it cannot be understood; {ADVICE}"));
    }
    parse(parameters).map_err(|_| {
        let wrong = parameters.iter().find(|parameter| parse(&[**parameter]).is_err());
        match wrong {
            Some(parameter) => {
                format!("its parameter {} is not one of MongoDB, or has a wrong value", name_of(parameter))
            }
            None => "its parameters contradict each other".to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_is_taken_out() {
        let address = Address::parse("mongodb://u:p%40ss@a:27017,b/timer?replicaSet=rs0&shards=16&maxPoolSize=7").unwrap();
        assert_eq!((address.database.as_str(), address.shards()), ("timer", 16));
        assert_eq!(address.connection.replica_set.as_deref(), Some("rs0"));
        assert_eq!(address.connection.max_pool_size, Some(7));
        assert_eq!(Address::parse("mongodb://a/timer").unwrap().shards(), SHARDS);
        assert!(Address::parse("mongodb+srv://cluster.example.com/timer?w=majority").is_ok());
        assert_eq!(format!("{address:?}"), "Address(…)");
    }

    #[test]
    fn what_is_wrong_is_named_and_not_shown() {
        for (url, rule) in [
            ("mongodb://a", "it names no database"),
            ("mongodb://a/", "it names no database"),
            ("mongodb://u:se/cret@a/timer", "it cannot be understood"),
            ("mongodb://a/timer?shards=0", "its parameter shards must be a number from 1 to 4096"),
            ("mongodb://a/timer?shards=many", "its parameter shards must be"),
            ("mongodb://a/timer?shards=1&shards=2", "its parameter shards is there twice"),
            ("mongodb://a/timer?maxPoolSize=secret", "its parameter maxPoolSize is not one of MongoDB, or has a wrong value"),
            ("mongodb://a/timer?color=secret", "its parameter color is not one of MongoDB"),
            ("mongodb://a/timer?w=0", "its parameter w must not be 0"),
        ] {
            let refused = Address::parse(url).unwrap_err();
            assert!(refused.contains(rule), "{url}: {refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
