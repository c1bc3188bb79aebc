use std::time::Duration;

use async_trait::async_trait;
use domain::{Attempt, Group, Missed, Namespace, NewTimer, Timer, TimerId, Timestamp};
use store::{COUNTED_MAX, Changed, Count, Created, Filter, GroupCount, ListQuery, Page, StoreError, StoreResult, TimerStore};

use crate::{
    Columns, Consistency, PartitionedStore, Range, after,
    columns::Head,
    json::{corrupt, from_json},
    layout,
    partitioned_store::Work,
    search,
    timer_row::TimerRow,
    transition::{self, Step},
};

/// How many members of a group are read at once.
const GROUP_PAGE: usize = 1_000;

impl PartitionedStore {
    /// Changes one timer.
    async fn change_one(
        &self,
        id: TimerId,
        decide: impl Fn(Option<TimerRow>) -> StoreResult<Step<Changed>> + Sync,
    ) -> StoreResult<Changed> {
        let answers = self.change(&[(id, ())], Columns::HEAD_AND_BODY, &|(), met| decide(met)).await?;
        answers.into_iter().next().ok_or_else(|| StoreError::Unknown("the change was not answered".into()))
    }
}

#[async_trait]
impl TimerStore for PartitionedStore {
    async fn create(&self, batch: Vec<NewTimer>) -> StoreResult<Vec<Created>> {
        let clock = self.now();
        let items: Vec<(TimerId, NewTimer)> = batch.into_iter().map(|new| (new.definition.id, new)).collect();
        let decide = |new: &NewTimer, met: Option<TimerRow>| transition::create(new, met, clock);
        let work = Work { items: &items, columns: Columns::HEAD_AND_BODY, is_presumed_absent: true, decide: &decide };
        self.carry_out(&work).await
    }

    async fn get(&self, id: TimerId) -> StoreResult<Option<Timer>> {
        let row = self.rows(&[id], Columns::HEAD_AND_BODY).await?.into_iter().next().flatten();
        row.map(|row| row.timer_or_corrupt()).transpose()
    }

    async fn list(&self, query: &ListQuery) -> StoreResult<Page> {
        search::list(self, query).await
    }

    async fn count(&self, filter: &Filter, budget: Duration) -> StoreResult<Count> {
        search::count(self, filter, budget).await
    }

    async fn update(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        self.change_one(changed.id(), |met| transition::update(changed, met, now)).await
    }

    async fn cancel(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        let clock = self.now();
        self.change_one(id, |met| transition::cancel(met, expected, now, clock)).await
    }

    async fn cancel_all(&self, ids: &[TimerId], now: Timestamp) -> StoreResult<Vec<bool>> {
        let clock = self.now();
        let items: Vec<(TimerId, ())> = ids.iter().map(|id| (*id, ())).collect();
        self.change(&items, Columns::HEAD, &|(), met| Ok(transition::cancel_one_of_many(met, now, clock))).await
    }

    async fn reopen(&self, id: TimerId, expected: Option<u32>, now: Timestamp) -> StoreResult<Changed> {
        self.change_one(id, |met| transition::reopen(met, expected, now)).await
    }

    async fn revive(&self, changed: &Timer, now: Timestamp) -> StoreResult<Changed> {
        let clock = self.now();
        self.change_one(changed.id(), |met| transition::revive(changed, met, now, clock)).await
    }

    async fn count_group(&self, namespace: &Namespace, group: &Group) -> StoreResult<GroupCount> {
        let mut count = GroupCount::default();
        let (prefix, limit) = (layout::group_of(namespace, group), usize::try_from(COUNTED_MAX).unwrap_or(usize::MAX));
        for shard in self.all_shards() {
            let mut from = prefix.to_vec();
            loop {
                let range = Range::of(layout::GROUP, from, layout::end_of(&prefix), GROUP_PAGE);
                let rows = self.database.range(&layout::timers(shard), &range, Columns::HEAD, Consistency::Committed).await?;
                for row in &rows {
                    if count.timers() >= limit as u64 {
                        count.is_capped = true;
                        return Ok(count);
                    }
                    let head: Head = from_json(&row.head).map_err(corrupt)?;
                    *count.by_status.entry(head.status).or_default() += 1;
                }
                match rows.last() {
                    Some(last) if rows.len() == GROUP_PAGE => from = after(last.position.clone()),
                    _ => break,
                }
            }
        }
        Ok(count)
    }

    async fn group_members(
        &self,
        namespace: &Namespace,
        group: &Group,
        after_id: Option<TimerId>,
        limit: usize,
    ) -> StoreResult<Vec<TimerId>> {
        let prefix = layout::group_of(namespace, group);
        let first = match after_id {
            Some(id) => after([&prefix[..], id.as_uuid().as_bytes()].concat()),
            None => prefix.to_vec(),
        };
        let mut open = Vec::new();
        for shard in self.all_shards() {
            let (mut from, mut found) = (first.clone(), 0);
            loop {
                let range = Range::of(layout::GROUP, from, layout::end_of(&prefix), GROUP_PAGE);
                let rows = self.database.range(&layout::timers(shard), &range, Columns::HEAD, Consistency::Committed).await?;
                for row in &rows {
                    let head: Head = from_json(&row.head).map_err(corrupt)?;
                    if !head.status.is_finished() {
                        open.extend(layout::timer_id(&row.key));
                        found += 1;
                    }
                }
                match rows.last() {
                    Some(last) if rows.len() == GROUP_PAGE && found < limit => from = after(last.position.clone()),
                    _ => break,
                }
            }
        }
        open.sort_unstable();
        open.truncate(limit);
        Ok(open)
    }

    async fn pause(&self, id: TimerId, expected: Option<u32>, note: Option<&str>, now: Timestamp) -> StoreResult<Changed> {
        self.change_one(id, |met| transition::pause(met, expected, note, now)).await
    }

    async fn resume(&self, id: TimerId, expected: Option<u32>, missed: Missed, now: Timestamp) -> StoreResult<Changed> {
        let clock = self.now();
        self.change_one(id, |met| transition::resume(met, expected, missed, now, clock)).await
    }

    async fn attempts(&self, id: TimerId) -> StoreResult<Vec<Attempt>> {
        let row = self.rows(&[id], Columns { head: true, body: false, log: true }).await?.into_iter().next().flatten();
        Ok(row.map(|row| row.attempts()).unwrap_or_default())
    }
}
