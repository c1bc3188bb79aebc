//! Timers that belong together.

use domain::{Group, Namespace, Status, TimerId};
use sqlx::{Row, types::Uuid};
use store::{COUNTED_MAX, GroupCount, Unreadable};
use store_sql::{Call, sql};

use crate::{
    connector::Connector,
    failure::{Failure, Step},
    rows,
    session::Session,
};

pub(crate) const COUNT_GROUP: &str = sql!("sql/count_group.sql");
pub(crate) const GROUP_MEMBERS: &str = sql!("sql/group_members.sql");

pub struct CountGroup {
    pub namespace: Namespace,
    pub group: Group,
}

impl Call<Connector> for CountGroup {
    type Answer = GroupCount;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<GroupCount, Failure> {
        // One more than is counted tells whether there are more.
        let counted_max = i64::try_from(COUNTED_MAX).unwrap_or(i64::MAX).saturating_add(1);
        let rows = sqlx::query(COUNT_GROUP)
            .bind(self.group.as_str().as_bytes())
            .bind(self.namespace.as_str().as_bytes())
            .bind(counted_max)
            .fetch_all(session)
            .await
            .or_not_done()?;
        let mut count = GroupCount::default();
        for row in rows {
            let status: String = row.try_get("status").or_not_done()?;
            let timers: i64 = row.try_get("timers").or_not_done()?;
            let status = Status::parse(&status).ok_or_else(|| Unreadable(format!("status {status} is not known")))?;
            count.by_status.insert(status, timers.unsigned_abs());
        }
        count.is_capped = count.timers() > COUNTED_MAX;
        Ok(count)
    }
}

pub struct GroupMembers {
    pub namespace: Namespace,
    pub group: Group,
    pub after: Option<TimerId>,
    pub limit: usize,
}

impl Call<Connector> for GroupMembers {
    type Answer = Vec<TimerId>;
    const WRITES: bool = false;

    async fn run(&self, session: &mut Session) -> Result<Vec<TimerId>, Failure> {
        let rows = sqlx::query(GROUP_MEMBERS)
            .bind(self.group.as_str().as_bytes())
            .bind(self.namespace.as_str().as_bytes())
            .bind(self.after.map_or_else(Uuid::nil, TimerId::as_uuid))
            .bind(i64::try_from(self.limit).unwrap_or(i64::MAX))
            .fetch_all(session)
            .await
            .or_not_done()?;
        rows.iter().map(rows::id).collect::<Result<_, _>>().or_not_done()
    }
}
