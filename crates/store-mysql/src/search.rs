//! Finding timers: a page of those that match, and how many there are.
//!
//! ```text
//!   few ──▶ all that a small index knows: ids, a rare status, a small namespace, a narrow period ──▶ sorted ──▶ the page
//!    └─ there are more than a few
//!         ▼
//!   walk ──▶ the next few hundred in the list’s order ──▶ those that match ──▶ full? at the end? out of time? ──▶ the page
//!                ▲                                                                  │
//!                └───────────────── the next thousands ◀─────────────────────────────┘
//! ```
//!
//! The server is never asked for a page of a whole table: it would have to guess how those that match lie among the others, and a
//! wrong guess reads everything. Each statement looks at a stretch of a known length, and between two of them there is a look at
//! the clock. What SQL cannot decide safely, such as the meaning of a JSON text, it only narrows; the rest is decided here.

mod few;
mod parameters;
mod source;
mod statement;

use std::time::Duration;

use domain::{Callback, CorrelationId, Group, Key, Namespace, Timestamp};
use sqlx::{Row, mysql::MySqlRow};
use store::{Candidate, Cursor, Filter, ListQuery, Page, Sort, Summary, Unreadable};
use store_sql::Call;
use tokio::time::Instant;

use self::statement::Answer;
pub use self::{
    source::{FEW, Few, Source},
    statement::{count, has_large_texts, statement},
};
use crate::{
    failure::{Failure, Step},
    rows::{self, Standing},
    session::Session,
    sessions::Sessions,
};

/// How many timers are looked at between two looks at the clock: mostly few are needed for a page.
const STRETCH_MIN: u64 = 250;
const STRETCH_MAX: u64 = 50_000;
/// So many rows come at a time where each has texts of its own that can be large.
const LARGE_ROWS_MAX: u64 = 256;

/// One page of a list.
pub struct List {
    pub query: ListQuery,
    pub shards: u16,
}

impl Call<Sessions> for List {
    type Answer = Page;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Page, Failure> {
        let mut search = Search::new(&self.query, self.shards);
        let (first, later) = Few::of(&self.query.filter, self.query.sort);
        if search.few(session, &first).await? {
            return Ok(search.page);
        }
        let mut pace = Pace::new(self.query.budget);
        while !search.is_over {
            let walked = search.stretch(session, Source::in_order(&self.query, pace.length)).await?;
            if search.is_over {
                break;
            }
            // Mostly the first stretch has a page of them. If it has not, they are rare, or far away.
            if pace.is_first() && search.few(session, &later).await? {
                break;
            }
            if !pace.next(walked) {
                search.page.complete = search.is_full();
                break;
            }
        }
        Ok(search.page)
    }
}

/// How long the next stretch may be.
pub struct Pace {
    length: u64,
    stretches: u32,
    began: Instant,
    /// When the stretch that is under way began.
    since: Instant,
    budget: Duration,
}

impl Pace {
    pub fn new(budget: Duration) -> Self {
        let now = Instant::now();
        Self { length: STRETCH_MIN, stretches: 0, began: now, since: now, budget }
    }

    pub const fn length(&self) -> u64 {
        self.length
    }

    const fn is_first(&self) -> bool {
        self.stretches == 0
    }

    /// Takes the length of the next stretch from how long the last one took. `false` when there is no time for one more.
    pub fn next(&mut self, walked: u64) -> bool {
        let now = Instant::now();
        let took = now - self.since;
        let left = self.budget.saturating_sub(now - self.began);
        self.since = now;
        self.stretches += 1;
        self.length = next_length(self.length, walked, took, left);
        self.length > 0
    }
}

/// As many as fit into the time that is left, if as many again take as long; at most eight times as many as before. None where that is
/// less than the shortest stretch.
fn next_length(length: u64, walked: u64, took: Duration, left: Duration) -> u64 {
    let nanos = took.as_nanos().max(1);
    let fit = u128::from(walked.max(1)) * left.as_nanos() * 3 / 4 / nanos;
    let fit = u64::try_from(fit).unwrap_or(u64::MAX).min(length * 8).min(STRETCH_MAX);
    if fit < STRETCH_MIN { 0 } else { fit }
}

/// What a search has found so far, and where it stands.
pub struct Search<'q> {
    query: &'q ListQuery,
    shards: u16,
    page: Page,
    /// How many that match are still to be passed over.
    to_pass: u64,
    shown: u64,
    after: Option<Cursor>,
    /// Whether the page is all that it can be.
    is_over: bool,
}

impl<'q> Search<'q> {
    pub fn new(query: &'q ListQuery, shards: u16) -> Self {
        Self { query, shards, page: Page::default(), to_pass: query.offset, shown: 0, after: query.after, is_over: false }
    }

    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    pub const fn scanned(&self) -> u64 {
        self.page.scanned
    }

    /// How many that match were shown.
    pub const fn found(&self) -> u64 {
        self.shown
    }

    pub const fn after(&self) -> Option<Cursor> {
        self.after
    }

    fn is_full(&self) -> bool {
        self.shown >= u64::from(self.query.limit)
    }

    /// Tries sources with few timers, one after the other, until one has few. Then the page is what it has.
    pub async fn few(&mut self, session: &mut Session, sources: &[Few]) -> Result<bool, Failure> {
        for few in sources {
            let from = self.from();
            let asked = statement(&Source::Few(few.clone()), &from, self.shards, self.rows_max());
            let answer = asked.fetch(session).await?;
            if answer.looked_at <= FEW {
                self.page.scanned += answer.looked_at;
                self.take(&answer, u64::MAX)?;
                // Large texts come a part at a time.
                if self.is_over || answer.rows.is_empty() {
                    self.is_over = true;
                    return Ok(true);
                }
                return Box::pin(self.few(session, std::slice::from_ref(few))).await;
            }
        }
        Ok(false)
    }

    /// Looks at one stretch in the order of the list. Returns how long it was.
    pub async fn stretch(&mut self, session: &mut Session, source: Source) -> Result<u64, Failure> {
        let length = source.length();
        let from = self.from();
        let answer = statement(&source, &from, self.shards, self.rows_max()).fetch(session).await?;
        let looked_at = self.take(&answer, length)?;
        self.page.scanned += looked_at;
        Ok(looked_at)
    }

    /// The query from where the search stands.
    fn from(&self) -> ListQuery {
        ListQuery { after: self.after, ..self.query.clone() }
    }

    /// One more than needed tells whether there is a next page.
    fn rows_max(&self) -> u64 {
        let needed = self.to_pass + u64::from(self.query.limit) - self.shown + 1;
        if has_large_texts(&self.query.filter) { LARGE_ROWS_MAX } else { needed }
    }

    /// Adds what was found to the page, and moves on. Returns how many timers were looked at.
    fn take(&mut self, answer: &Answer, length: u64) -> Result<u64, Failure> {
        for row in &answer.rows {
            if !self.fits(row)? {
                continue;
            }
            if self.to_pass > 0 {
                self.to_pass -= 1;
                continue;
            }
            if self.is_full() {
                self.is_over = true;
                return answer.place_of(row);
            }
            self.shown += 1;
            self.page.next = Some(cursor(row, self.query.sort)?);
            match summary(row) {
                Ok(summary) => self.page.timers.push(summary),
                Err(failure) => {
                    let id = rows::id(row).or_not_done()?;
                    tracing::warn!(timer.id = %id, error = %failure.error, "a stored timer cannot be listed");
                }
            }
        }
        if answer.rows.len() as u64 == answer.rows_max {
            // There may be more in the same stretch.
            let last = answer.rows.last().map(|row| cursor(row, self.query.sort)).transpose()?;
            self.after = last;
            self.page.next = last;
            return answer.rows.last().map_or(Ok(0), |row| answer.place_of(row));
        }
        let is_at_end = answer.looked_at < length;
        self.is_over = is_at_end || self.is_full();
        self.after = answer.last.or(self.after);
        self.page.next = if is_at_end { None } else { self.after };
        Ok(answer.looked_at)
    }

    /// What SQL only narrowed is decided here.
    fn fits(&self, row: &MySqlRow) -> Result<bool, Failure> {
        fits(&self.query.filter, row)
    }
}

/// Whether a row that SQL let through matches.
pub fn fits(filter: &Filter, row: &MySqlRow) -> Result<bool, Failure> {
    if !has_large_texts(filter) {
        return Ok(true);
    }
    let text = |column: &str| row.try_get::<Option<&str>, _>(column).or_not_done();
    let candidate = Candidate {
        metadata: if filter.reads_metadata() { text("metadata")? } else { None },
        destination: if filter.destination.is_some() { text("callback")?.and_then(Callback::address_in) } else { None },
        ..Candidate::default()
    };
    // All else was decided by the statement.
    let rest = Filter {
        destination: filter.destination.clone(),
        metadata: filter.metadata.clone(),
        members: filter.members.clone(),
        ..Filter::default()
    };
    Ok(rest.fits_definition(&candidate))
}

pub fn cursor(row: &MySqlRow, sort: Sort) -> Result<Cursor, Failure> {
    let column = match sort {
        Sort::CreatedAt => "created_at",
        Sort::ExecuteAt => "execute_at",
    };
    Ok(Cursor { at: timestamp(row, column)?, id: rows::id(row).or_not_done()? })
}

fn summary(row: &MySqlRow) -> Result<Summary, Failure> {
    let unreadable = |invalid: domain::Invalid| Failure::from(Unreadable(invalid.to_string()));
    let text = |column| rows::optional_text(row, column).or_not_done();
    let standing = Standing::of_row(row)?;
    Ok(Summary {
        id: rows::id(row).or_not_done()?,
        namespace: Namespace::parse(&rows::text(row, "namespace").or_not_done()?).map_err(unreadable)?,
        key: text("key")?.as_deref().map(Key::parse).transpose().map_err(unreadable)?,
        group: text("group_name")?.as_deref().map(Group::parse).transpose().map_err(unreadable)?,
        callback_kind: row.try_get("callback_type").or_not_done()?,
        correlation_id: text("correlation_id")?.as_deref().map(CorrelationId::parse).transpose().map_err(unreadable)?,
        execute_at: timestamp(row, "execute_at")?,
        status: standing.status,
        attempt: u32::try_from(standing.attempt).unwrap_or(0),
        last_error: standing.last_error,
        executed_at: standing.executed_at.map(Timestamp::from_micros),
        created_at: timestamp(row, "created_at")?,
        updated_at: standing.finished_at.map_or_else(|| timestamp(row, "updated_at"), |at| Ok(Timestamp::from_micros(at)))?,
        revision: revision(row)?,
    })
}

fn revision(row: &MySqlRow) -> Result<u32, Failure> {
    let revision: i64 = row.try_get("revision").or_not_done()?;
    u32::try_from(revision).map_err(|_| Unreadable("revision is out of range".to_owned()).into())
}

fn timestamp(row: &MySqlRow, column: &str) -> Result<Timestamp, Failure> {
    row.try_get(column).map(Timestamp::from_micros).or_not_done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_as_long_as_the_time_that_is_left() {
        let ms = Duration::from_millis;
        for (length, walked, took, left, next) in [
            (250, 250, ms(1), ms(249), 2_000),
            (8_000, 8_000, ms(16), ms(232), 50_000),
            (1_000, 1_000, ms(100), ms(150), 1_125),
            (1_000, 1_000, ms(200), ms(50), 0),
            (1_000, 1_000, ms(2), ms(0), 0),
            (50_000, 50_000, ms(40), ms(40), 37_500),
        ] {
            assert_eq!(next_length(length, walked, took, left), next, "{length} {walked} {took:?} {left:?}");
        }
    }
}
