//! Finding timers: a page of those that match, and how many there are.
//!
//! ```text
//!   few ──▶ all that a small index knows: ids, a rare status, a small namespace, a narrow period ──▶ sorted ──▶ the page
//!    └─ there are more than a few, or the planner believes so
//!         ▼
//!   walk ──▶ the next few hundred in the list’s order ──▶ those that match ──▶ full? at the end? out of time? ──▶ the page
//!                ▲                                                                  │
//!                └───────────────── the next thousands ◀─────────────────────────────┘
//! ```
//!
//! The server is never asked for a page of a whole table: it would have to guess how those that match lie among the others, and a
//! wrong guess reads everything. Each statement looks at a stretch of a known length, and between two of them there is a look at
//! the clock. What SQL cannot decide safely, such as the meaning of a JSON text, it only narrows; the rest is decided here. The
//! statements are those of a store: see [`Finder`].

mod count;
mod pace;
mod source;

use std::future::Future;

use domain::{Callback, Namespace, TimerId};
use store::{Candidate, Cursor, Filter, ListQuery, Page, Sort, Summary};

use self::pace::Pace;
pub use self::{
    count::{Count, Tally},
    source::{CLAIMED_AHEAD_MICROS, EXECUTING_LOOKED_AT_MAX, FEW, Few, Source},
};
use crate::{
    Call, Driver, Failure,
    rows::{self, Row},
};

/// The maximum number of rows that are fetched at a time where each has texts of its own that can be large.
const LARGE_ROWS_MAX: u64 = 256;

type Session<F> = <<F as Finder>::Driver as Driver>::Session;

/// The statements that search timers in a database.
pub trait Finder: Clone + Send + Sync + 'static {
    type Driver: Driver;

    /// Whether an index has the timers of this namespace in this order.
    fn is_indexed(&self, namespace: &Namespace, sort: Sort) -> bool;

    /// Finds out what [`is_indexed`](Self::is_indexed) has to know of these namespaces and this order.
    fn look_for_indexes(
        &self,
        _session: &mut Session<Self>,
        _namespaces: &[Namespace],
        _sort: Sort,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(Ok(()))
    }

    /// Looks at the timers of a source from where the query goes on, and shows up to `rows_max` of those that match. Where few are asked for
    /// and there are more, it may show none.
    fn find(
        &self,
        session: &mut Session<Self>,
        source: &Source,
        from: &ListQuery,
        rows_max: u64,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send;

    /// How many timers a source has, as the planner believes. `None` where it is not asked: then the source is tried.
    fn expected_few(
        &self,
        _session: &mut Session<Self>,
        _few: &Few,
    ) -> impl Future<Output = Result<Option<u64>, Failure>> + Send {
        std::future::ready(Ok(None))
    }

    /// How many timers of a source match; only for filters for which [`has_large_texts`] does not hold.
    fn tally(
        &self,
        session: &mut Session<Self>,
        source: &Source,
        from: &ListQuery,
    ) -> impl Future<Output = Result<Tally, Failure>> + Send;

    /// The answer to a statement that counts; `None` where it takes longer than this.
    fn counted(
        &self,
        session: &mut Session<Self>,
        text: String,
        within: Option<std::time::Duration>,
    ) -> impl Future<Output = Result<Option<u64>, Failure>> + Send;

    /// How many of these rows of narrow tables belong to timers of the filter's namespaces, as the planner believes. Each is a text such as
    /// `due t WHERE t.claim IS NULL`.
    fn expected(
        &self,
        session: &mut Session<Self>,
        filter: &Filter,
        rows: &[String],
    ) -> impl Future<Output = Result<u64, Failure>> + Send;

    /// How many timers a walk to the end would look at, as the planner believes: those of these namespaces, or of all if there are none, in
    /// the period of the time by which the query sorts.
    fn expected_definitions(
        &self,
        session: &mut Session<Self>,
        query: &ListQuery,
        namespaces: &[Namespace],
    ) -> impl Future<Output = Result<u64, Failure>> + Send;
}

/// What a statement found.
#[derive(Debug)]
pub struct Answer {
    /// Those that match as far as the statement could tell.
    pub lines: Vec<Line>,
    pub rows_max: u64,
    /// How many timers were looked at.
    pub looked_at: u64,
    /// The last of them.
    pub last: Option<Cursor>,
    /// How many of the source match, where the query asks for it and the statement tells.
    pub total: Option<u64>,
}

/// A timer that a statement found.
#[derive(Debug)]
pub struct Line {
    /// How many timers had been looked at when this one was found.
    pub place: u64,
    pub id: TimerId,
    pub cursor: Cursor,
    /// `None` where it does not match after all.
    pub summary: Option<Result<Summary, Failure>>,
}

impl Line {
    /// From a row that SQL let through.
    pub fn of_row(query: &ListQuery, row: &impl Row) -> Result<Self, Failure> {
        let filter = &query.filter;
        let metadata = if filter.reads_metadata() { row.optional_text("metadata")? } else { None };
        let callback = if filter.destination.is_some() { row.optional_text("callback")? } else { None };
        let is_found = !has_large_texts(filter) || fits(filter, callback, metadata);
        Ok(Self {
            place: row.number("n")?.unsigned_abs(),
            id: row.id()?,
            cursor: rows::cursor(row, query.sort)?,
            summary: is_found.then(|| rows::summary(row)),
        })
    }
}

/// One page of a list.
#[derive(Debug)]
pub struct List<F> {
    pub finder: F,
    pub query: ListQuery,
}

impl<F: Finder> Call<F::Driver> for List<F> {
    type Answer = Page;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session<F>) -> Result<Page, Failure> {
        self.finder.look_for_indexes(session, &self.query.filter.namespaces, self.query.sort).await?;
        let is_indexed = |namespace: &Namespace, sort| self.finder.is_indexed(namespace, sort);
        let mut search = Search::new(&self.finder, &self.query);
        let (first, mut later) = Few::of(&self.query.filter, self.query.sort, is_indexed);
        let (first, unlikely) = by_likelihood(&self.finder, session, first).await?;
        if search.few(session, &first).await? {
            return Ok(search.page);
        }
        let mut pace = Pace::new(self.query.budget);
        while !search.is_over {
            let walked = search.stretch(session, Source::in_order(&self.query, pace.length(), is_indexed)).await?;
            if search.is_over {
                break;
            }
            // Mostly the first stretch has a page of them. If it has not, they are rare, or far away.
            if pace.is_first() && self.is_few_likely(session, &later).await? {
                if search.few(session, &later).await? {
                    break;
                }
                later.clear();
            }
            if !pace.next(walked, search.expected_walk()) {
                // The planner may have been wrong.
                later.extend(unlikely);
                let is_found = !search.is_full() && search.few(session, &later).await?;
                search.page.complete = is_found || search.is_full();
                break;
            }
        }
        Ok(search.page)
    }
}

impl<F: Finder> List<F> {
    /// Whether it is worth a try to fetch all of these, which take a while where there are many.
    async fn is_few_likely(&self, session: &mut Session<F>, later: &[Few]) -> Result<bool, Failure> {
        Ok(!later.is_empty() && count::is_few_likely(&self.finder, session, &self.query.filter.status).await?)
    }
}

/// What a search has found so far, and where it stands.
struct Search<'q, F> {
    finder: &'q F,
    query: &'q ListQuery,
    page: Page,
    /// How many that match are still to be passed over.
    to_pass: u64,
    after: Option<Cursor>,
    /// Whether the page is all that it can be.
    is_over: bool,
}

impl<'q, F: Finder> Search<'q, F> {
    fn new(finder: &'q F, query: &'q ListQuery) -> Self {
        Self { finder, query, page: Page::default(), to_pass: query.offset, after: query.after, is_over: false }
    }

    /// How many more fit into the page.
    fn room(&self) -> u64 {
        u64::from(self.query.limit).saturating_sub(self.page.count() as u64)
    }

    fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// How many timers have to be looked at until the page is full, if those that match lie as densely as so far; unlimited where none was
    /// found.
    fn expected_walk(&self) -> u64 {
        let found = self.query.offset - self.to_pass + self.page.count() as u64;
        let needed = self.to_pass + self.room() + 1;
        (needed * self.page.scanned).checked_div(found).unwrap_or(u64::MAX)
    }

    /// Tries sources with few timers, one after the other, until one has few. Then the page is what it has.
    async fn few(&mut self, session: &mut Session<F>, sources: &[Few]) -> Result<bool, Failure> {
        for few in sources {
            // Large texts come a part at a time.
            loop {
                let answer = self.finder.find(session, &Source::Few(few.clone()), &self.from(), self.rows_max()).await?;
                self.page.scanned += answer.looked_at;
                if answer.looked_at > FEW {
                    break;
                }
                self.page.total = answer.total.map(store::Count::exactly);
                let is_empty = answer.lines.is_empty();
                self.take(answer, u64::MAX);
                if self.is_over || is_empty {
                    self.is_over = true;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Looks at one stretch in the order of the list. Returns how long it was.
    async fn stretch(&mut self, session: &mut Session<F>, source: Source) -> Result<u64, Failure> {
        let length = source.length();
        let answer = self.finder.find(session, &source, &self.from(), self.rows_max()).await?;
        let looked_at = self.take(answer, length);
        self.page.scanned += looked_at;
        Ok(looked_at)
    }

    /// The query from where the search stands.
    fn from(&self) -> ListQuery {
        ListQuery { after: self.after, ..self.query.clone() }
    }

    /// One more than needed tells whether there is a next page.
    fn rows_max(&self) -> u64 {
        let needed = self.to_pass + self.room() + 1;
        if has_large_texts(&self.query.filter) { LARGE_ROWS_MAX } else { needed }
    }

    /// Adds what was found to the page, and moves on. Returns how many timers were looked at.
    fn take(&mut self, answer: Answer, length: u64) -> u64 {
        let Answer { lines, rows_max, looked_at, last, .. } = answer;
        let (count, last_line) = (lines.len() as u64, lines.last().map(|line| (line.place, line.cursor)));
        for Line { place, id, cursor, summary } in lines {
            let Some(summary) = summary else { continue };
            if self.to_pass > 0 {
                self.to_pass -= 1;
                continue;
            }
            if self.is_full() {
                self.is_over = true;
                return place;
            }
            self.page.next = Some(cursor);
            match summary {
                Ok(summary) => self.page.timers.push(summary),
                Err(failure) => {
                    tracing::warn!(timer.id = %id, error = %failure.error, "a stored timer cannot be listed");
                    self.page.unreadable.push(cursor);
                }
            }
        }
        if let (true, Some((place, cursor))) = (count == rows_max, last_line) {
            // There may be more in the same stretch.
            self.after = Some(cursor);
            self.page.next = self.after;
            return place;
        }
        let is_at_end = looked_at < length;
        self.is_over = is_at_end || self.is_full();
        self.after = last.or(self.after);
        self.page.next = if is_at_end { None } else { self.after };
        looked_at
    }
}

/// Those that may be few, and those that the planner believes not to be. It may be wrong by a factor.
///
/// To fetch more than a few only to learn that they are too many takes longer than to walk to a page of them.
async fn by_likelihood<F: Finder>(
    finder: &F,
    session: &mut Session<F>,
    sources: Vec<Few>,
) -> Result<(Vec<Few>, Vec<Few>), Failure> {
    let (mut likely, mut unlikely) = (Vec::new(), Vec::new());
    for few in sources {
        let expected = finder.expected_few(session, &few).await?;
        if expected.is_none_or(|expected| expected <= 2 * FEW) { likely.push(few) } else { unlikely.push(few) }
    }
    Ok((likely, unlikely))
}

/// Whether the filter asks about texts that only this program can read.
pub fn has_large_texts(filter: &Filter) -> bool {
    filter.reads_metadata() || filter.destination.is_some()
}

/// Whether a timer that SQL let through matches, by the texts that only this program can read: the beginning of its callback and its metadata.
fn fits(filter: &Filter, callback: Option<&str>, metadata: Option<&str>) -> bool {
    let candidate = Candidate { metadata, destination: callback.and_then(Callback::address_in), ..Candidate::default() };
    // All else was decided by the statement.
    let rest = Filter {
        destination: filter.destination.clone(),
        metadata: filter.metadata.clone(),
        members: filter.members.clone(),
        ..Filter::default()
    };
    rest.fits_definition(&candidate)
}
