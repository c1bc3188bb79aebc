//! The journal: what happened to timers and is in no row of theirs. Written in the transaction of the change itself.

use domain::{Status, TimerId, Timestamp};
use serde::Serialize;
use store::{Happened, JOURNAL_KEPT};
use store_sql::sql;

use crate::{
    failure::Failure,
    literal,
    rows::{Hex, json},
    transaction::Transaction,
};

pub(crate) const JOURNAL: &str = sql!("sql/journal.sql");

/// What a transaction has to record.
#[derive(Debug, Default)]
pub struct Entries(Vec<Line>);

#[derive(Debug, Serialize)]
struct Line {
    id: Hex,
    kind: i16,
    seq: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    moment: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

impl Entries {
    pub fn push(&mut self, id: TimerId, what: Happened) {
        let (moment, seq, status) = what.columns();
        self.0.push(Line { id: id.into(), kind: what.kind(), seq, moment, status });
    }

    /// A creation, which is recorded by its own row where it is written in time.
    pub fn created(&mut self, transaction: &Transaction<'_>, id: TimerId, at: Timestamp) {
        if !transaction.is_prompt(at) {
            self.push(id, Happened::Created { at });
        }
    }

    pub fn changed(&mut self, id: TimerId, revision: u32) {
        self.push(id, Happened::Changed { revision });
    }

    /// An end, which is recorded by its own row where it is written in time.
    pub fn finished(&mut self, transaction: &Transaction<'_>, id: TimerId, at: Timestamp, status: Status) {
        if !transaction.is_prompt(at) {
            self.push(id, Happened::Finished { at, status });
        }
    }

    /// The end of a former life, whose row is removed. No reader asks for one from before all that is kept.
    pub fn ended(&mut self, transaction: &Transaction<'_>, id: TimerId, at: Timestamp, status: Status) {
        if is_kept(transaction, at) {
            self.push(id, Happened::Ended { at, status });
        }
    }

    /// The creation of a former life, whose time is replaced.
    pub fn began(&mut self, transaction: &Transaction<'_>, id: TimerId, at: Timestamp) {
        if is_kept(transaction, at) {
            self.push(id, Happened::Began { at });
        }
    }

    /// Has them written with the commit, if there are any.
    pub fn write(self, transaction: &mut Transaction<'_>) -> Result<(), Failure> {
        if !self.0.is_empty() {
            let values = [literal::number(transaction.now), literal::text(&json(&self.0)?)];
            transaction.then(literal::placed(JOURNAL, values));
        }
        Ok(())
    }
}

fn is_kept(transaction: &Transaction<'_>, at: Timestamp) -> bool {
    at > Timestamp::from_micros(transaction.now).saturating_sub(JOURNAL_KEPT)
}
