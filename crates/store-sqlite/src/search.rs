//! Finding timers: a page of those that match, and how many there are.
//!
//! ```text
//!   plan: where to walk ──▶ streams of (time, id), in the order of the list ──▶ merged ──▶ each one looked at ──▶ page
//!                                                                                   └── every 256: is there time left?
//! ```
//!
//! A plan takes the access path on which least is in between: along an index in the order of the list, or from the few that have a rare
//! status, a small namespace or a narrow period, which are sorted. What no index knows is decided in memory, timer by timer, so
//! that a search can stop at any of them and go on from there.

mod look_up;
mod plan;
mod stream;

use std::time::Duration;

use rusqlite::Connection;
use store::{Count, Cursor, Filter, ListQuery, Order, Page, Sort};
use tokio::time::Instant;

pub use self::plan::Plan;
use self::{
    look_up::LookUp,
    stream::{Merged, Place},
};
use crate::{failure::Failure, tally};

#[cfg(test)]
pub use self::{
    look_up::LOOK_AT,
    plan::{AccessPath, ROWS_CREATED_WITHIN},
    stream::statement,
};

/// The number of timers that are looked at between two looks at the clock.
const LOOKED_AT_ONCE: u64 = 256;

pub fn list(connection: &Connection, query: &ListQuery) -> Result<Page, Failure> {
    let snapshot = connection.unchecked_transaction()?;
    let plan = Plan::choose(&snapshot, query)?;
    let mut walk = Walk::begin(&snapshot, &plan, query, query.budget)?;
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let (mut page, mut passed, mut found) = (Page::default(), 0, 0);
    let mut full_at = None;
    loop {
        let before = walk.last;
        let Some(step) = walk.step()? else { break };
        found += u64::from(matches!(step, Step::Fits(_)));
        match step {
            Step::OutOfTime => {
                page.next = walk.last;
                page.complete = page.count() == limit;
                break;
            }
            Step::Passed => {}
            Step::Fits(_) if passed < query.offset => passed += 1,
            Step::Fits(_) if page.count() == limit => {
                page.next = before;
                break;
            }
            Step::Fits(Ok(summary)) => page.timers.push(*summary),
            // Of a timer that cannot be read only its place is known.
            Step::Fits(Err(error)) => {
                tracing::warn!(error = %error, "a timer cannot be listed");
                page.unreadable.extend(walk.last);
            }
        }
        // Whether there is one more is worth a short look, not the whole budget.
        if page.count() == limit {
            let full_at = *full_at.get_or_insert(walk.scanned);
            if walk.scanned - full_at >= LOOKED_AT_ONCE {
                page.next = walk.last;
                break;
            }
        }
    }
    page.scanned = walk.scanned;
    // What was sorted anew would be sorted once more to be counted, unless its number is known.
    let has_read_all = plan.is_sorted_anew(query.sort) && query.after.is_none() && page.complete;
    let is_known = query.filter.is_by_status_and_namespace();
    if let (true, false, Some(budget)) = (has_read_all, is_known, query.total_within) {
        walk.deadline = Instant::now() + budget;
        page.total = Some(walk.count_on(&plan, found)?);
    }
    Ok(page)
}

/// What is counted by status and namespace is known. Anything else is looked for, and where time runs out, what was not looked at
/// is taken to be like what was.
pub fn count(connection: &Connection, filter: &Filter, budget: Duration) -> Result<Count, Failure> {
    if filter.is_by_status_and_namespace() {
        return tally::count(connection, filter).map(Count::exactly);
    }
    let snapshot = connection.unchecked_transaction()?;
    let (plan, query) = Plan::to_count(&snapshot, filter)?;
    let mut walk = Walk::begin(&snapshot, &plan, &query, budget)?;
    walk.count_on(&plan, 0)
}

/// What a walk meets next.
enum Met {
    Place(Place),
    OutOfTime,
}

/// What a step of a walk came to.
enum Step {
    Fits(look_up::Found),
    Passed,
    OutOfTime,
}

/// One look after the other along the streams of a plan.
struct Walk<'c> {
    streams: Merged<'c>,
    look_up: LookUp<'c>,
    sort: Sort,
    /// Whether the streams say of each timer whether it matches.
    is_decided: bool,
    deadline: Instant,
    scanned: u64,
    /// The last timer that was looked at.
    last: Option<Cursor>,
}

impl<'c> Walk<'c> {
    fn begin(snapshot: &'c Connection, plan: &Plan, query: &'c ListQuery, budget: Duration) -> Result<Self, Failure> {
        let wanted = u64::from(query.limit).saturating_add(query.offset).saturating_add(1);
        let filter = &query.filter;
        // Where a timer stands its summary says.
        let of_definition = Filter { status: Vec::new(), error: None, ..filter.clone() };
        let is_definition_decided = plan.paths.iter().all(|path| path.decides(&of_definition));
        Ok(Self {
            streams: Merged::new(snapshot, plan.paths.clone(), query, wanted),
            look_up: LookUp::prepare(snapshot, filter, is_definition_decided)?,
            sort: query.sort,
            is_decided: plan.paths.iter().all(|path| path.decides(filter)),
            deadline: Instant::now() + budget,
            scanned: 0,
            last: None,
        })
    }

    /// How many match, of which so many were found so far: counted to the end if there is time for it.
    fn count_on(&mut self, plan: &Plan, found: u64) -> Result<Count, Failure> {
        let is_all_read = plan.is_sorted_anew(self.sort);
        let mut counted = found;
        while let Some(met) = self.meet()? {
            match met {
                Met::Place(place) => counted += u64::from(self.fits(&place)?),
                Met::OutOfTime => {
                    let size = if is_all_read { self.scanned + self.streams.waiting() } else { plan.size };
                    let share = u128::from(counted) * u128::from(size) / u128::from(self.scanned.max(1));
                    return Ok(Count::about(u64::try_from(share).unwrap_or(u64::MAX).max(counted)));
                }
            }
        }
        Ok(Count::exactly(counted))
    }

    /// `None` when there is nothing left to look at.
    fn step(&mut self) -> Result<Option<Step>, Failure> {
        Ok(match self.meet()? {
            None => None,
            Some(Met::OutOfTime) => Some(Step::OutOfTime),
            Some(Met::Place(place)) if place.may_fit => Some(self.look_up.find(place.id)?.map_or(Step::Passed, Step::Fits)),
            Some(Met::Place(_)) => Some(Step::Passed),
        })
    }

    fn fits(&mut self, place: &Place) -> Result<bool, Failure> {
        Ok(place.may_fit && (self.is_decided || self.look_up.find(place.id)?.is_some()))
    }

    fn meet(&mut self) -> Result<Option<Met>, Failure> {
        let is_time_to_look = self.scanned > 0 && self.scanned.is_multiple_of(LOOKED_AT_ONCE);
        if is_time_to_look && Instant::now() >= self.deadline && !self.streams.is_at_end()? {
            return Ok(Some(Met::OutOfTime));
        }
        let Some(place) = self.streams.next()? else { return Ok(None) };
        let here = Some(Cursor { at: place.at, id: place.id.timer() });
        // A status that is named twice is walked along twice.
        if here == self.last {
            return Ok(Some(Met::Place(Place { may_fit: false, ..place })));
        }
        self.scanned += 1;
        self.last = here;
        Ok(Some(Met::Place(place)))
    }
}

/// Words of SQL that depend on the direction of a list.
const fn direction(order: Order) -> (&'static str, &'static str) {
    match order {
        Order::Ascending => ("ASC", ">"),
        Order::Descending => ("DESC", "<"),
    }
}

/// The column of a definition by which a list is sorted.
const fn time_column(sort: Sort) -> &'static str {
    match sort {
        Sort::CreatedAt => "d.created_at",
        Sort::ExecuteAt => "d.execute_at",
    }
}
