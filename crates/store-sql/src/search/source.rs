//! Where a search looks for timers.

use domain::{Group, Namespace, Status, TimerId};
use store::{Filter, ListQuery, Period, Sort};

/// The maximum number of timers of a source that are fetched and sorted.
pub const FEW: u64 = 5_000;
/// The maximum number of due timers among which those that are executing are looked for.
pub const EXECUTING_LOOKED_AT_MAX: u64 = 20_000;
/// A node claims what is due by its own clock, and nothing once that is known to be half a second ahead of the database's. The rest is for
/// what it cannot know: a slow comparison, or a clock that was set since.
pub const CLAIMED_AHEAD_MICROS: u64 = 2_000_000;
/// The maximum number of namespaces for which the index is walked along once each.
const NAMESPACES_MERGED_MAX: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The next `length` timers in the order of the list.
    InOrder { length: u64 },
    /// The next `length` timers of these namespaces in the order of the list.
    OfNamespaces { namespaces: Vec<Namespace>, length: u64 },
    /// All of these, if they are few.
    Few(Few),
}

/// What a small index may know all of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Few {
    Ids(Vec<TimerId>),
    Statuses(Vec<Status>),
    Namespaces(Vec<Namespace>),
    /// The timers of a group in these namespaces.
    Group(Vec<Namespace>, Group),
    Due(Period),
    Created(Period),
}

impl Source {
    /// `is_indexed` says whether an index has the timers of a namespace in an order.
    pub fn in_order(query: &ListQuery, length: u64, is_indexed: impl Fn(&Namespace, Sort) -> bool) -> Self {
        let ListQuery { filter, sort, .. } = query;
        if are_indexed(&filter.namespaces, |namespace| is_indexed(namespace, *sort)) {
            return Self::OfNamespaces { namespaces: filter.namespaces.clone(), length };
        }
        Self::InOrder { length }
    }

    pub const fn length(&self) -> u64 {
        match self {
            Self::InOrder { length } | Self::OfNamespaces { length, .. } => *length,
            Self::Few(_) => u64::MAX,
        }
    }
}

impl Few {
    /// What is worth a try before the first stretch, and what after it.
    pub fn of(filter: &Filter, sort: Sort, is_indexed: impl Fn(&Namespace, Sort) -> bool) -> (Vec<Self>, Vec<Self>) {
        if let (Some(key), false) = (&filter.key, filter.namespaces.is_empty()) {
            let ids = filter.namespaces.iter().map(|namespace| TimerId::keyed(namespace, key)).collect();
            return (vec![Self::Ids(ids)], Vec::new());
        }
        let (mut first, mut later) = (Vec::new(), Vec::new());
        if let (Some(group), false) = (&filter.group, filter.namespaces.is_empty()) {
            first.push(Self::Group(filter.namespaces.clone(), group.clone()));
        }
        if !filter.status.is_empty() {
            let are_rare = filter.status.iter().all(|status| is_rare(*status));
            let sources = if are_rare { &mut first } else { &mut later };
            sources.push(Self::Statuses(filter.status.clone()));
        }
        match sort {
            Sort::CreatedAt if !filter.due.is_always() => first.push(Self::Due(filter.due)),
            Sort::ExecuteAt => {
                let are_indexed = |sort| are_indexed(&filter.namespaces, |namespace| is_indexed(namespace, sort));
                if are_indexed(Sort::CreatedAt) && !are_indexed(Sort::ExecuteAt) {
                    first.push(Self::Namespaces(filter.namespaces.clone()));
                }
                if !filter.created.is_always() {
                    first.push(Self::Created(filter.created));
                }
            }
            Sort::CreatedAt => {}
        }
        (first, later)
    }
}

/// What is mostly rare among millions, and has an index of its own or stands first in one.
const fn is_rare(status: Status) -> bool {
    matches!(status, Status::Executing | Status::Failed | Status::Canceled | Status::Expired | Status::Paused)
}

fn are_indexed(namespaces: &[Namespace], is_indexed: impl Fn(&Namespace) -> bool) -> bool {
    (1..=NAMESPACES_MERGED_MAX).contains(&namespaces.len()) && namespaces.iter().all(is_indexed)
}
