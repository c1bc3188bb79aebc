//! Canceling many at once.

use domain::{TimerId, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use store_sql::{column, sql};

use crate::{change::Canceling, failure::Failure, rows::Id, step::cancel_paused, tally::Tally, writer::Write};

pub const DUE_MINUTE: &str = sql!("sql/due_minute.sql");

pub struct CancelAll {
    pub ids: Vec<TimerId>,
    pub now: Timestamp,
}

impl Write for CancelAll {
    type Answer = Vec<bool>;
    const NAME: &'static str = "cancel_all";

    fn rows(&self) -> usize {
        self.ids.len()
    }

    fn run(&self, connection: &Connection, tally: &mut Tally) -> Result<Vec<bool>, Failure> {
        let mut due_minute = connection.prepare_cached(DUE_MINUTE)?;
        let mut canceling = Canceling::prepare(connection)?;
        let mut canceled = Vec::with_capacity(self.ids.len());
        for id in self.ids.iter().copied().map(Id::of) {
            let minute: Option<i64> = due_minute.query_row([id], |row| row.get(column!(DUE_MINUTE, "due_minute"))).optional()?;
            canceled.push(match minute {
                Some(minute) => {
                    canceling.run(minute, id, self.now, tally)? || cancel_paused(connection, id.timer(), self.now, tally)?
                }
                None => false,
            });
        }
        Ok(canceled)
    }
}
