//! Timers that belong together.

use domain::{Group, Namespace, Status, Timer};
use store::GroupCount;

use crate::{Fixture, NOW, Stage, ahead, secs, timer};

fn group(name: &str) -> Group {
    Group::parse(name).unwrap()
}

fn namespace(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}

pub async fn a_group_is_counted_by_status_inside_its_namespace(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (place, status) in Status::ALL.into_iter().enumerate() {
        for n in 0..=place {
            let draft = timer("http://a.example/").key(&format!("{status}-{n}")).group("g");
            stage.in_status(draft.clone(), status).await;
        }
        stage.in_status(timer("http://a.example/").namespace("tenant").key(status.as_str()).group("g"), status).await;
        stage.in_status(timer("http://a.example/").key(status.as_str()).group("G"), status).await;
        stage.in_status(timer("http://a.example/"), status).await;
    }
    let expected = |count: fn(usize) -> u64| GroupCount {
        by_status: Status::ALL.into_iter().enumerate().map(|(place, status)| (status, count(place))).collect(),
        is_capped: false,
    };
    let counted =
        async |in_namespace: &str, name: &str| stage.store.count_group(&namespace(in_namespace), &group(name)).await.unwrap();
    assert_eq!(counted("default", "g").await, expected(|place| place as u64 + 1));
    assert_eq!(counted("tenant", "g").await, expected(|_| 1));
    assert_eq!(counted("default", "G").await, expected(|_| 1));
    assert_eq!(counted("default", "h").await, GroupCount::default());
    assert_eq!(counted("unknown", "g").await, GroupCount::default());
}

pub async fn the_open_members_of_a_group_come_in_the_order_of_their_ids(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let mut open = Vec::new();
    for (number, status) in (0..).zip(Status::ALL.into_iter().cycle().take(3 * Status::ALL.len())) {
        let draft = timer("http://a.example/").numbered(number * 7_919 % 101).group("g");
        let timer = stage.in_status(draft, status).await;
        if !status.is_finished() {
            open.push(timer.id());
        }
    }
    stage.create(timer("http://a.example/").group("h")).await;
    stage.create(timer("http://a.example/").namespace("tenant").group("g")).await;
    open.sort_unstable();
    let members = async |after, limit| stage.store.group_members(&namespace("default"), &group("g"), after, limit).await.unwrap();
    assert_eq!(members(None, 100).await, open);
    assert_eq!(members(None, 2).await, open[..2]);
    assert_eq!(members(Some(open[1]), 2).await, open[2..4]);
    assert_eq!(members(open.last().copied(), 2).await, []);
}

pub async fn a_timer_changes_its_group_with_its_content_and_not_with_its_time(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let first = stage.create(timer("http://a.example/").key("k").group("g")).await;
    let moved = timer("http://a.example/").key("k").group("h").due_in(secs(9)).on_conflict(domain::OnConflict::Keep);
    let answer = stage.create_all(vec![moved]).await.remove(0);
    assert_eq!(answer.timer().definition.group, Some(group("g")));
    let mut changed: Timer = stage.get(first.id()).await;
    changed.definition.group = Some(group("h"));
    let changed = stage.update(&changed, NOW).await;
    assert_eq!(changed.definition.group, Some(group("h")));
    assert_eq!(stage.get(first.id()).await, changed);
    let counted = async |name: &str| {
        stage.store.count_group(&namespace("default"), &group(name)).await.unwrap().by_status.get(&Status::Pending).copied()
    };
    assert_eq!((counted("g").await, counted("h").await), (None, Some(1)));
    let claimed = stage.claim_one(&changed).await;
    assert_eq!(claimed.timer.unwrap().definition.group, Some(group("h")));
    assert_eq!(stage.due(ahead(secs(600))).await, []);
}
