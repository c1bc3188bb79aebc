//! Reading one timer.

use domain::{Timer, TimerId};
use rusqlite::{Connection, OptionalExtension};

use crate::{
    failure::Failure,
    rows::{Id, TIMER_BY_ID, found},
};

pub fn get(connection: &Connection, id: TimerId) -> Result<Option<Timer>, Failure> {
    let found = connection.prepare_cached(TIMER_BY_ID)?.query_row([Id::of(id)], found).optional()?;
    match found {
        Some(found) => Ok(Some(found?.timer.into_timer()?)),
        None => Ok(None),
    }
}

/// The timer as this transaction leaves it. One that cannot be understood fails the request, and nothing is changed.
pub fn read_back(connection: &Connection, id: Id) -> Result<Timer, Failure> {
    let found = connection.prepare_cached(TIMER_BY_ID)?.query_row([id], found)??;
    Ok(found.timer.into_timer()?)
}
