//! Which access paths a search takes.

use std::cell::OnceCell;

use domain::{Group, Namespace, Status, TimerId, Timestamp};
use rusqlite::{Connection, ToSql};
use store::{Filter, ListQuery, Period, Sort};

use crate::{default_index, failure::Failure, tally};

/// The maximum number of timers that are fetched and sorted. Of more, a walk in the order of the list soon meets enough.
pub const FEW: u64 = 20_000;
/// The maximum number of namespaces for which the index is walked along once each.
const NAMESPACES_MERGED_MAX: usize = 16;

/// An access path: where a search finds timers, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessPath {
    /// These timers.
    Ids(Vec<TimerId>),
    /// All, in the order of creation.
    Created,
    /// Those of a namespace, in the order of creation. Of the default one only where [`default_index`] knows it.
    Namespace(Namespace),
    /// Unfinished timers that are due at their `execute_at`, in the order of that time.
    Due,
    /// Unfinished timers that are due at another time, in the order of `execute_at`.
    Moved,
    /// Finished timers, in the order of `execute_at`.
    Finished,
    /// Paused timers, in the order of `execute_at`.
    Paused,
    /// The timers of a group in a namespace.
    Group(Namespace, Group),
    /// Those that have a status.
    Status(Status),
}

impl AccessPath {
    pub const BY_TIME: [Self; 4] = [Self::Due, Self::Moved, Self::Finished, Self::Paused];

    /// Whether the order of the list is another one than that in which they are found, so that all of them are fetched and sorted.
    pub fn is_sorted_anew(&self, sort: Sort) -> bool {
        match self {
            Self::Ids(_) | Self::Status(_) | Self::Group(..) => true,
            Self::Created | Self::Namespace(_) => sort == Sort::ExecuteAt,
            Self::Due | Self::Moved | Self::Finished | Self::Paused => sort == Sort::CreatedAt,
        }
    }

    /// Whether a stream along it says of each timer whether it matches, so that they are counted without a look at each.
    pub fn decides(&self, filter: &Filter) -> bool {
        let mut rest = filter.clone();
        match self {
            Self::Ids(_) => return false,
            Self::Created | Self::Namespace(_) => rest.namespaces.clear(),
            Self::Group(..) => {
                rest.namespaces.clear();
                rest.group = None;
            }
            Self::Due | Self::Moved | Self::Finished | Self::Paused | Self::Status(_) => {
                rest.namespaces.clear();
                rest.status.clear();
            }
        }
        Filter { due: Period::default(), created: Period::default(), ..rest } == Filter::default()
    }

    /// Whether timers of one of the statuses can be met on it.
    fn can_meet(&self, status: &[Status]) -> bool {
        match self {
            Self::Due | Self::Moved => {
                status.is_empty() || status.iter().any(|status| matches!(status, Status::Pending | Status::Executing))
            }
            Self::Paused => status.is_empty() || status.contains(&Status::Paused),
            Self::Finished => status.is_empty() || status.iter().any(|status| status.is_finished()),
            _ => true,
        }
    }
}

/// The access paths of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub paths: Vec<AccessPath>,
    /// How many timers are met on them, or more. A page in their order does not ask that.
    pub size: u64,
}

impl Plan {
    /// Whether all of it is read before the first timer of a list is known.
    pub fn is_sorted_anew(&self, sort: Sort) -> bool {
        !self.paths.is_empty() && self.paths.iter().all(|path| path.is_sorted_anew(sort))
    }

    /// The access paths of a page.
    pub fn choose(connection: &Connection, query: &ListQuery) -> Result<Self, Failure> {
        Planner { connection, filter: &query.filter, few_due: OnceCell::new() }.choose(query)
    }

    /// The access paths of a walk to the end, with the query whose order they have: that in which least has to be looked at.
    pub fn to_count(connection: &Connection, filter: &Filter) -> Result<(Self, ListQuery), Failure> {
        let planner = Planner { connection, filter, few_due: OnceCell::new() };
        let is_by_due_time = filter.created.is_always() && planner.few_due()?.is_some();
        let sort = if is_by_due_time { Sort::ExecuteAt } else { Sort::CreatedAt };
        let query = ListQuery { filter: filter.clone(), sort, limit: u32::MAX, ..ListQuery::default() };
        let mut plan = planner.choose(&query)?;
        if !plan.is_sorted_anew(sort) && !plan.paths.is_empty() {
            plan.size = planner.size_in_order(sort)?;
        }
        Ok((plan, query))
    }
}

/// What plans are made from: the numbers that every transaction keeps, and how many rows there are in a period.
struct Planner<'c> {
    connection: &'c Connection,
    filter: &'c Filter,
    /// See [`few_due_within`], which reads thousands of rows.
    few_due: OnceCell<Option<u64>>,
}

impl Planner<'_> {
    fn choose(&self, query: &ListQuery) -> Result<Plan, Failure> {
        let Self { connection, filter, .. } = *self;
        let sort = query.sort;
        let by_status_and_namespace =
            Filter { status: filter.status.clone(), namespaces: filter.namespaces.clone(), ..Filter::default() };
        let most = tally::count(connection, &by_status_and_namespace)?;
        if most == 0 {
            return Ok(Plan { paths: Vec::new(), size: 0 });
        }
        if let (Some(key), false) = (&filter.key, filter.namespaces.is_empty()) {
            let ids: Vec<_> = filter.namespaces.iter().map(|namespace| TimerId::keyed(namespace, key)).collect();
            return Ok(Plan { size: ids.len() as u64, paths: vec![AccessPath::Ids(ids)] });
        }
        let in_order = Plan { paths: self.paths_in_order(sort)?, size: most };
        let Some(few) = self.few(sort)? else { return Ok(in_order) };
        let size = self.size_in_order(sort)?;
        let wanted = u64::from(query.limit).saturating_add(query.offset).saturating_add(1);
        // Where only status and namespace are asked for, those that match are taken to lie evenly among the others.
        let expected = if filter.is_by_status_and_namespace() { size.min(size / most * wanted) } else { size };
        Ok(if few.size <= expected { few } else { Plan { size, ..in_order } })
    }

    fn few_due(&self) -> Result<Option<u64>, Failure> {
        if let Some(few) = self.few_due.get() {
            return Ok(*few);
        }
        let few = few_due_within(self.connection, &self.filter.due)?;
        Ok(*self.few_due.get_or_init(|| few))
    }

    /// Whether the namespaces are walked along one by one.
    fn is_merged(&self) -> Result<bool, Failure> {
        is_merged(self.connection, &self.filter.namespaces)
    }

    /// The access paths along the order of the list.
    fn paths_in_order(&self, sort: Sort) -> Result<Vec<AccessPath>, Failure> {
        Ok(match sort {
            Sort::CreatedAt if self.is_merged()? => self.of_namespaces(),
            Sort::CreatedAt => vec![AccessPath::Created],
            Sort::ExecuteAt => self.by_time(),
        })
    }

    /// How many timers are met on them, or more.
    fn size_in_order(&self, sort: Sort) -> Result<u64, Failure> {
        let all = match sort {
            Sort::CreatedAt if self.is_merged()? => self.in_namespaces()?,
            _ => tally::count(self.connection, &Filter::default())?,
        };
        match sort {
            Sort::CreatedAt => Ok(all.min(created_within(self.connection, &self.filter.created, all)?)),
            Sort::ExecuteAt => Ok(self.few_due()?.unwrap_or(all)),
        }
    }

    fn of_namespaces(&self) -> Vec<AccessPath> {
        self.filter.namespaces.iter().cloned().map(AccessPath::Namespace).collect()
    }

    fn in_namespaces(&self) -> Result<u64, Failure> {
        let of_namespaces = Filter { namespaces: self.filter.namespaces.clone(), ..Filter::default() };
        tally::count(self.connection, &of_namespaces)
    }

    fn by_time(&self) -> Vec<AccessPath> {
        AccessPath::BY_TIME.into_iter().filter(|path| path.can_meet(&self.filter.status)).collect()
    }

    /// The shortest access path on which there are few timers, to be sorted.
    fn few(&self, sort: Sort) -> Result<Option<Plan>, Failure> {
        let Self { connection, filter, .. } = *self;
        let mut plans = vec![of_statuses(connection, filter)?, of_group(connection, filter)?];
        if sort == Sort::ExecuteAt && self.is_merged()? {
            plans.push(Some(Plan { paths: self.of_namespaces(), size: self.in_namespaces()? }));
        }
        if sort == Sort::ExecuteAt && !filter.created.is_always() {
            plans.push(Some(Plan { paths: vec![AccessPath::Created], size: created_up_to_few(connection, &filter.created)? }));
        }
        if sort == Sort::CreatedAt && !filter.due.is_always() {
            plans.push(self.few_due()?.map(|size| Plan { paths: self.by_time(), size }));
        }
        Ok(plans.into_iter().flatten().filter(|plan| plan.size <= FEW).min_by_key(|plan| plan.size))
    }
}

fn is_merged(connection: &Connection, namespaces: &[Namespace]) -> Result<bool, Failure> {
    for namespace in namespaces {
        if !default_index::knows(connection, namespace)? {
            return Ok(false);
        }
    }
    Ok((1..=NAMESPACES_MERGED_MAX).contains(&namespaces.len()))
}

/// `None` where no status is asked for, or one that is found only by passing over many others.
fn of_statuses(connection: &Connection, filter: &Filter) -> Result<Option<Plan>, Failure> {
    let count = |status: &[Status]| tally::count(connection, &Filter { status: status.to_vec(), ..Filter::default() });
    if filter.status.is_empty() {
        return Ok(None);
    }
    let mut passed_over = 0;
    for status in &filter.status {
        passed_over += match status {
            Status::Executing | Status::Failed | Status::Canceled | Status::Expired | Status::Paused => count(&[*status])?,
            Status::Pending => count(&[Status::Pending, Status::Executing])?,
            _ => {
                let finished: Vec<_> = Status::ALL.into_iter().filter(|status| status.is_finished()).collect();
                count(&finished)?
            }
        };
    }
    Ok(Some(Plan { paths: filter.status.iter().copied().map(AccessPath::Status).collect(), size: passed_over }))
}

/// `None` where no group is asked for, or not within namespaces.
fn of_group(connection: &Connection, filter: &Filter) -> Result<Option<Plan>, Failure> {
    let Some(group) = filter.group.as_ref().filter(|_| !filter.namespaces.is_empty()) else { return Ok(None) };
    let mut plan = Plan { paths: Vec::new(), size: 0 };
    let rows = "definition INDEXED BY definition_group WHERE namespace = ?1 AND group_name = ?2";
    let mut statement = connection.prepare_cached(&format!("SELECT count(*) AS timers FROM (SELECT 1 FROM {rows} LIMIT ?3)"))?;
    for namespace in &filter.namespaces {
        let parameters: [&dyn ToSql; 3] = [&namespace.as_str(), &group.as_str(), &(FEW as i64 + 1)];
        let count: i64 = statement.query_row(parameters, |row| row.get("timers"))?;
        plan.size += count.unsigned_abs();
        plan.paths.push(AccessPath::Group(namespace.clone(), group.clone()));
    }
    Ok(Some(plan))
}

/// The rows at both ends of a period, and how many there may be in all. Each is one step in an index: the two ends of a table in one SELECT
/// would be a walk over all of it.
pub const ROWS_CREATED_WITHIN: &str = "
    SELECT
        (SELECT rowid FROM definition WHERE created_at >= ?1 ORDER BY created_at LIMIT 1) AS first,
        (SELECT rowid FROM definition WHERE created_at < ?2 ORDER BY created_at DESC LIMIT 1) AS last,
        (SELECT max(rowid) FROM definition) - (SELECT min(rowid) FROM definition) + 1 AS whole";

/// How many timers were created in a period, out of so many. Where they are not few, that is estimated by their row numbers, which are given
/// in the order of creation.
fn created_within(connection: &Connection, period: &Period, all: u64) -> Result<u64, Failure> {
    if period.is_always() {
        return Ok(all);
    }
    let few = created_up_to_few(connection, period)?;
    if few <= FEW {
        return Ok(few);
    }
    let (from, to) = bounds(period);
    let (first, last, whole): (i64, i64, i64) = connection
        .prepare_cached(ROWS_CREATED_WITHIN)?
        .query_row([from, to], |row| Ok((row.get("first")?, row.get("last")?, row.get("whole")?)))?;
    let share = u128::from(all) * u128::from(last.abs_diff(first) + 1) / u128::from(whole.unsigned_abs().max(1));
    Ok(u64::try_from(share).unwrap_or(all).max(few).min(all))
}

/// How many timers were created in a period; counted up to one more than few.
fn created_up_to_few(connection: &Connection, period: &Period) -> Result<u64, Failure> {
    let rows = "definition INDEXED BY definition_created WHERE created_at >= ?1 AND created_at < ?2";
    up_to_few(connection, rows, None, period).map(|timers| timers.unwrap_or(FEW + 1))
}

/// How many timers are due in a period by their `execute_at`; `None` where that is always, or where more than a few have to be looked at.
fn few_due_within(connection: &Connection, period: &Period) -> Result<Option<u64>, Failure> {
    if period.is_always() {
        return Ok(None);
    }
    let minutes = "minute >= ?1 / 60000000 - 1 AND minute <= ?2 / 60000000";
    let exactly = "execute_at >= ?1 AND execute_at < ?2";
    let mut count = 0;
    for (rows, fits) in [
        (format!("due WHERE shard = 0 AND {minutes}"), Some("execute_at IS NULL AND at >= ?1 AND at < ?2")),
        (format!("due INDEXED BY due_moved WHERE {exactly}"), None),
        (format!("outcome WHERE {minutes}"), Some(exactly)),
        (format!("paused WHERE {minutes}"), Some(exactly)),
    ] {
        let Some(timers) = up_to_few(connection, &rows, fits, period)? else { return Ok(None) };
        count += timers;
    }
    Ok((count <= FEW).then_some(count))
}

/// How many of these rows fit; with no `fits` all of them do. `None` where they are not few. What fits is asked only of a few: that takes
/// longer than to count rows.
fn up_to_few(connection: &Connection, rows: &str, fits: Option<&str>, period: &Period) -> Result<Option<u64>, Failure> {
    let (from, to) = bounds(period);
    let count = |text: &str, parameters: &[&dyn ToSql]| {
        connection.prepare_cached(text)?.query_row(parameters, |row| row.get::<_, i64>("timers")).map(i64::unsigned_abs)
    };
    let one_more = FEW as i64 + 1;
    let read = count(&format!("SELECT count(*) AS timers FROM (SELECT 1 FROM {rows} LIMIT ?3)"), &[&from, &to, &one_more])?;
    Ok(match fits {
        _ if read > FEW => None,
        None => Some(read),
        Some(fits) => Some(count(&format!("SELECT count(*) AS timers FROM {rows} AND {fits}"), &[&from, &to])?),
    })
}

fn bounds(period: &Period) -> (i64, i64) {
    (period.from.map_or(i64::MIN / 2, Timestamp::as_micros), period.to.map_or(i64::MAX, Timestamp::as_micros))
}
