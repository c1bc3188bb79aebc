//! Timers that belong together.

use domain::{Group, Namespace, Status, TimerId};
use rusqlite::{Connection, params};
use store::{COUNTED_MAX, GroupCount, StoreError};
use store_sql::{column, sql};

use crate::{failure::Failure, rows::Id};

pub const COUNT_GROUP: &str = sql!("sql/count_group.sql");
pub const GROUP_MEMBERS: &str = sql!("sql/group_members.sql");

pub fn count(connection: &Connection, namespace: &Namespace, group: &Group) -> Result<GroupCount, Failure> {
    let counted_max = i64::try_from(COUNTED_MAX).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(COUNT_GROUP)?;
    // One more than is counted tells whether there are more.
    let mut rows = statement.query(params![namespace.as_str(), group.as_str(), counted_max.saturating_add(1)])?;
    let mut count = GroupCount::default();
    while let Some(row) = rows.next()? {
        let status: String = row.get(column!(COUNT_GROUP, "status"))?;
        let timers: i64 = row.get(column!(COUNT_GROUP, "timers"))?;
        let unknown = || StoreError::Corrupt(format!("a timer has the status {status}, which is not known").into());
        count.by_status.insert(Status::parse(&status).ok_or_else(unknown)?, timers.unsigned_abs());
    }
    count.is_capped = count.timers() > COUNTED_MAX;
    Ok(count)
}

pub fn members(
    connection: &Connection,
    namespace: &Namespace,
    group: &Group,
    after: Option<TimerId>,
    limit: usize,
) -> Result<Vec<TimerId>, Failure> {
    let mut statement = connection.prepare_cached(GROUP_MEMBERS)?;
    // Every id is greater than no bytes.
    let after: Vec<u8> = after.map(|after| Id::of(after).bytes().to_vec()).unwrap_or_default();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![namespace.as_str(), group.as_str(), after, limit])?;
    let mut members = Vec::new();
    while let Some(row) = rows.next()? {
        members.push(row.get::<_, Id>(column!(GROUP_MEMBERS, "id"))?.timer());
    }
    Ok(members)
}
