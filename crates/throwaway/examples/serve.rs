//! A throw-away server for measurements by hand: starts it, prints its URL, and ends it once standard input ends.
//!
//! ```text
//! cargo run --release --package throwaway --example serve -- cassandra
//! ```

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("cassandra") => keep(throwaway::Cassandra::start(), |server| server.url("bench")),
        Some("mongodb") => keep(throwaway::Mongodb::start(), |server| server.url("bench")),
        _ => Err(std::io::Error::other("which one? cassandra or mongodb")),
    }
}

fn keep<T>(server: Option<T>, url: impl Fn(&T) -> String) -> std::io::Result<()> {
    let server =
        server.ok_or_else(|| std::io::Error::other("there is none here: see scripts/cassandra.sh and scripts/mongodb.sh"))?;
    writeln!(std::io::stdout(), "{}", url(&server))?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
