use std::time::Duration;

use domain::{Access, AccessKey, Caller, Namespaces, Rights, Span};
use store::{ListQuery, Operation};
use store_testing::Fault;
use tokio::time::{Instant, sleep};

use super::*;
use crate::rig::{NOW, Rig};

fn key(rig: &Rig) -> Commands {
    let (key, _) = AccessKey::issue("k", Access { namespaces: Namespaces::All, rights: Rights::Write }, [7; 32], NOW).unwrap();
    rig.commands.on_behalf_of(Caller::Holder(key.into()))
}

fn list(commands: &Commands) -> tokio::task::JoinHandle<Result<crate::Page, CommandError>> {
    let commands = commands.clone();
    tokio::spawn(async move { commands.search(&ListQuery::default()).await })
}

#[tokio::test(start_paused = true)]
async fn the_searches_of_one_key_leave_a_permit_for_another() {
    let rig = Rig::new();
    let (greedy, other) = (key(&rig), key(&rig));
    for _ in 1..SCANS_MAX {
        rig.store.plan(Operation::List, Fault::Late(Span::from_secs(4)));
    }
    let searches: Vec<_> = (0..20).map(|_| list(&greedy)).collect();
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    list(&other).await.unwrap().unwrap();
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    assert_eq!(rig.store.calls(Operation::List), SCANS_MAX, "the rest waits");
    for search in searches {
        search.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_that_its_client_has_left_keeps_its_permit_until_the_store_is_done() {
    let rig = Rig::new();
    let greedy = key(&rig);
    for _ in 1..SCANS_MAX {
        rig.store.plan(Operation::List, Fault::Late(Span::from_secs(4)));
        let left = list(&greedy);
        sleep(Duration::from_millis(1)).await;
        left.abort();
    }
    let began = Instant::now();
    list(&greedy).await.unwrap().unwrap();
    assert!(began.elapsed() > Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_search_that_would_wait_for_too_long_is_refused() {
    let rig = Rig::new();
    let greedy = key(&rig);
    for _ in 1..SCANS_MAX {
        rig.store.plan(Operation::List, Fault::Late(Span::from_secs(6)));
    }
    let searches: Vec<_> = (0..SCANS_MAX).map(|_| list(&greedy)).collect();
    let mut refused = 0;
    for search in searches {
        refused += usize::from(matches!(search.await.unwrap(), Err(CommandError::TooManySearches)));
    }
    assert_eq!(refused, 1);
    list(&greedy).await.unwrap().unwrap();
}
