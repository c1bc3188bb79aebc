//! Looking at one timer: does it match, and what does a list show of it.

use domain::{ADDRESS_BYTES, Callback, Timestamp};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};
use store::{Candidate, Filter, Summary, Unreadable};
use store_sql::{column, sql};

use crate::{
    failure::Failure,
    rows::{Id, SUMMARY_BY_ID, is_senseless, summary},
};

pub const LOOK_AT: &str = sql!("../sql/look_at.sql");

/// What a list shows of a timer; `Err` where it cannot be read.
pub type Found = Result<Box<Summary>, Unreadable>;

pub struct LookUp<'c> {
    filter: &'c Filter,
    /// Only where it is not known yet whether the definition fits.
    definition: Option<CachedStatement<'c>>,
    summary: CachedStatement<'c>,
}

impl<'c> LookUp<'c> {
    /// `is_definition_decided` says that what is looked up has a definition that is known to fit.
    pub fn prepare(connection: &'c Connection, filter: &'c Filter, is_definition_decided: bool) -> Result<Self, Failure> {
        Ok(Self {
            filter,
            definition: (!is_definition_decided).then(|| connection.prepare_cached(LOOK_AT)).transpose()?,
            summary: connection.prepare_cached(SUMMARY_BY_ID)?,
        })
    }

    /// `None` when the timer does not match.
    pub fn find(&mut self, id: Id) -> Result<Option<Found>, Failure> {
        if !self.definition_fits(id)? {
            return Ok(None);
        }
        let shown = match self.summary.query_row([id], summary).optional() {
            Ok(Some(shown)) => shown,
            Ok(None) => Err(Unreadable(format!("timer {} has no definition", id.timer()))),
            Err(error) if is_senseless(&error) => Err(Unreadable(format!("timer {}: {error}", id.timer()))),
            Err(error) => return Err(error.into()),
        };
        let filter = self.filter;
        Ok(match shown {
            Ok(shown) => {
                let is_in_namespace = filter.namespaces.is_empty() || filter.namespaces.contains(&shown.namespace);
                let fits = is_in_namespace && filter.fits_standing(shown.status, shown.last_error.as_deref());
                fits.then(|| Ok(Box::new(shown)))
            }
            // What cannot be read may be anything.
            Err(unreadable) => Some(Err(unreadable)),
        })
    }

    fn definition_fits(&mut self, id: Id) -> Result<bool, Failure> {
        let Some(statement) = &mut self.definition else { return Ok(true) };
        let filter = self.filter;
        let (reads_metadata, reads_callback) = (filter.reads_metadata(), filter.destination.is_some());
        let fits =
            statement.query_row((id, reads_metadata, reads_callback, ADDRESS_BYTES as i64), |row| fits(filter, row)).optional();
        match fits {
            Ok(fits) => Ok(fits.unwrap_or(true)),
            Err(error) if is_senseless(&error) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

fn fits(filter: &Filter, row: &Row<'_>) -> rusqlite::Result<bool> {
    let text = |column: usize| -> rusqlite::Result<Option<&str>> { Ok(row.get_ref(column)?.as_str_or_null()?) };
    let candidate = Candidate {
        namespace: text(column!(LOOK_AT, "namespace"))?.unwrap_or_default(),
        key: text(column!(LOOK_AT, "key"))?,
        group: text(column!(LOOK_AT, "group_name"))?,
        execute_at: Timestamp::from_micros(row.get(column!(LOOK_AT, "execute_at"))?),
        created_at: Timestamp::from_micros(row.get(column!(LOOK_AT, "created_at"))?),
        correlation_id: text(column!(LOOK_AT, "correlation_id"))?,
        metadata: text(column!(LOOK_AT, "metadata"))?,
        destination: text(column!(LOOK_AT, "callback"))?.and_then(Callback::address_in),
    };
    Ok(filter.fits_definition(&candidate))
}
