//! Reading due timers: order, cursors, limits.

use domain::{Next, Shard, Status, Timer, TimerId, Timestamp};
use store::{DueEntry, ShardCursor};

use crate::{
    Draft, Fixture, NOW, Stage, ago, ahead, micros, secs,
    stage::{entry, entry_at},
    timer,
};

fn beginning(shard: Shard) -> ShardCursor {
    ShardCursor { shard, after: None }
}

/// Sixty timers over three minutes, with times that repeat, in all shards.
async fn a_crowd(stage: &Stage) -> Vec<DueEntry> {
    let draft = |n: u32| timer("http://a.example/").numbered(u64::from(n * 37 % 60)).due_in(secs(n % 5 * 40));
    let timers = stage.create_new((0..60).map(draft).collect()).await;
    let mut entries: Vec<_> = timers.iter().map(entry).collect();
    entries.sort_unstable();
    entries
}

pub async fn nothing_is_due_in_an_empty_store(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    assert_eq!(stage.due(Timestamp::MAX).await, []);
}

pub async fn due_entries_come_in_the_order_of_time_then_id(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let crowd = a_crowd(&stage).await;
    for shard in stage.all_shards() {
        let read = stage.store.due(&[beginning(shard)], ahead(secs(600)), 1_000).await.unwrap();
        let expected: Vec<_> = crowd.iter().copied().filter(|entry| stage.shard(entry.id) == shard).collect();
        assert_eq!(read, expected, "{shard:?}");
    }
}

pub async fn due_pages_by_cursor_neither_repeat_nor_miss_an_entry(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let crowd = a_crowd(&stage).await;
    for limit in [1, 2, 3, 7, 15, 100] {
        for shard in stage.all_shards() {
            let (mut read, mut cursor) = (Vec::new(), beginning(shard));
            loop {
                let page = stage.store.due(&[cursor], ahead(secs(600)), limit).await.unwrap();
                assert!(page.len() <= limit, "{} entries, at most {limit} were asked for", page.len());
                cursor.after = page.last().map(|last| (last.at, last.id)).or(cursor.after);
                let was_last = page.len() < limit;
                read.extend(page);
                if was_last {
                    break;
                }
            }
            let expected: Vec<_> = crowd.iter().copied().filter(|entry| stage.shard(entry.id) == shard).collect();
            assert_eq!(read, expected, "{shard:?} in pages of {limit}");
        }
    }
}

pub async fn several_shards_are_read_in_one_call_each_to_its_own_limit(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let crowd = a_crowd(&stage).await;
    let mut shards = stage.all_shards();
    shards.reverse();
    let mut from = Vec::new();
    let mut expected = Vec::new();
    for (index, shard) in shards.into_iter().enumerate() {
        let mine: Vec<_> = crowd.iter().copied().filter(|entry| stage.shard(entry.id) == shard).collect();
        // Every second shard has been read up to its third entry already.
        let read = if index % 2 == 1 { mine.len().min(3) } else { 0 };
        let after = mine[..read].last().map(|last| (last.at, last.id));
        from.push(ShardCursor { shard, after });
        expected.extend(mine.iter().skip(read).take(4));
    }
    assert_eq!(stage.store.due(&from, ahead(secs(600)), 4).await.unwrap(), expected);
}

pub async fn until_is_inclusive(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let timer = stage.create(timer("http://a.example/").due_in(micros(30_000_001))).await;
    assert_eq!(stage.due(ahead(secs(30))).await, []);
    assert_eq!(stage.due(ahead(micros(30_000_001))).await, [entry(&timer)]);
    assert_eq!(stage.due(Timestamp::MAX).await, [entry(&timer)]);
}

pub async fn only_pending_timers_are_due(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut pending = Vec::new();
    for status in Status::ALL {
        let timer = stage.in_status(timer("http://a.example/").key(status.as_str()), status).await;
        if status == Status::Pending {
            pending.push(entry(&timer));
        }
    }
    assert_eq!(stage.due(ahead(secs(600))).await, pending);
}

pub async fn a_cursor_goes_by_time_then_by_id(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let step = u64::from(stage.store.shards());
    let draft = |n: u64, at| timer("http://a.example/").numbered(n * step).due_at(at);
    // All in one shard, with ids in the opposite order of the times.
    let drafts: Vec<Draft> = vec![draft(4, NOW), draft(5, NOW), draft(3, ahead(secs(1))), draft(1, ahead(secs(61)))];
    let timers = stage.create_new(drafts).await;
    let shard = stage.shard(timers[0].id());
    let entries: Vec<_> = timers.iter().map(entry).collect();
    let rest = |at: Timestamp, id: TimerId| {
        let cursor = ShardCursor { shard, after: Some((at, id)) };
        let store = &stage.store;
        async move { store.due(&[cursor], ahead(secs(600)), 10).await.unwrap() }
    };
    assert_eq!(rest(NOW, timers[0].id()).await, entries[1..]);
    assert_eq!(rest(NOW, timers[1].id()).await, entries[2..]);
    // Cursors at which there is no timer.
    assert_eq!(rest(NOW, draft(0, NOW).id()).await, entries[..]);
    assert_eq!(rest(ago(secs(3_600)), draft(9, NOW).id()).await, entries[..]);
    assert_eq!(rest(ahead(secs(1)), draft(9, NOW).id()).await, entries[3..]);
    assert_eq!(rest(ahead(secs(61)), draft(9, NOW).id()).await, []);
}

pub async fn what_moves_behind_the_cursor_is_read_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let step = u64::from(stage.store.shards());
    let draft = |n: u64| timer("http://a.example/").numbered(n * step).due_in(secs(10));
    let timers = stage.create_new((1..=6).map(draft).collect()).await;
    let shard = stage.shard(timers[0].id());
    let page = stage.store.due(&[beginning(shard)], ahead(secs(600)), 3).await.unwrap();
    assert_eq!(page, timers[..3].iter().map(entry).collect::<Vec<_>>());
    // Later in the same minute: the one of the cursor, one before it and one after it.
    let mut moved = Vec::new();
    for (place, at) in [(2, secs(20)), (0, secs(30)), (4, secs(40))] {
        moved.push(stage.update(&Timer { execute_at: ahead(at), ..timers[place].clone() }, NOW).await);
    }
    let cursor = ShardCursor { shard, after: page.last().map(|last| (last.at, last.id)) };
    let expected: Vec<_> = [&timers[3], &timers[5]].into_iter().chain(&moved).map(entry).collect();
    for limit in [1, 2, 3, 5, 9] {
        let rest = stage.store.due(&[cursor], ahead(secs(600)), limit).await.unwrap();
        assert_eq!(rest, expected[..limit.min(expected.len())], "at most {limit}");
    }
}

pub async fn a_retry_is_due_at_its_own_time(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for at in [ahead(secs(1)), ahead(secs(61)), ago(secs(61))] {
        let claimed = stage.claim_one(&stage.create(timer("http://a.example/")).await).await;
        stage.settle(&claimed, Next::Pending { at, attempt: 1, error: None }).await;
        let timer = stage.get(claimed.entry.id).await;
        assert_eq!(timer.execute_at, NOW, "a retry does not move the due time");
        assert_eq!(stage.due(ahead(secs(600))).await, [entry_at(&timer, at)]);
        stage.cancel(timer.id()).await;
    }
}

pub async fn due_entries_carry_the_destination(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // Tenant and receiver fill all 64 bits; both halves of the range must survive a signed column.
    let drafts: Vec<_> = (0..16).map(|n| timer(&format!("http://host-{n}.example/")).namespace(&format!("tenant-{n}"))).collect();
    let timers = stage.create_new(drafts).await;
    let halves = |is_high: bool| timers.iter().filter(|timer| (entry(timer).destination.0 > u64::MAX / 2) == is_high).count();
    assert!(halves(true) > 0 && halves(false) > 0);
    let mut expected: Vec<_> = timers.iter().map(entry).collect();
    expected.sort_unstable();
    assert_eq!(stage.due(NOW).await, expected);
}

pub async fn far_apart_times_are_read_together(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let step = u64::from(stage.store.shards());
    let times = [0, 1, 59_999_999, 60_000_000, NOW.as_micros(), Timestamp::MAX.as_micros() - 1, Timestamp::MAX.as_micros()];
    let drafts =
        times.iter().zip(1..).map(|(at, n)| timer("http://a.example/").numbered(n * step).due_at(Timestamp::from_micros(*at)));
    let timers = stage.create_new(drafts.collect()).await;
    let read = stage.store.due(&[beginning(stage.shard(timers[0].id()))], Timestamp::MAX, 100).await.unwrap();
    assert_eq!(read, timers.iter().map(entry).collect::<Vec<_>>());
}
