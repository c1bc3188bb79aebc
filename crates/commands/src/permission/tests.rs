use std::sync::Arc;

use domain::{Access, AccessKey, Group, Key, Missed, Namespaces, Next, OnConflict, Rights, limits};
use store::{ListQuery, Sort};

use super::*;
use crate::{
    NewTimerRequest, Patch, PeriodRequest, Selection,
    rig::{NOW, Rig, keyed, plain},
};

fn namespace(text: &str) -> Namespace {
    Namespace::parse(text).unwrap()
}

fn holder(names: &[&str], rights: Rights) -> Caller {
    let access = Access { namespaces: Namespaces::Only(names.iter().map(|name| namespace(name)).collect()), rights };
    Caller::Holder(Arc::new(AccessKey::issue("k", access, [7; 32], NOW).unwrap().0))
}

fn in_namespace(name: &str) -> NewTimerRequest {
    NewTimerRequest { namespace: namespace(name), ..keyed("a", OnConflict::Reject) }
}

fn everything() -> ListQuery {
    ListQuery { sort: Sort::CreatedAt, limit: 10, ..ListQuery::default() }
}

fn all_pending() -> Selection {
    Selection { filter: Filter::default(), expected_max: limits::CANCELED_AT_ONCE_MAX }
}

fn group() -> Group {
    Group::parse("g").unwrap()
}

fn is_forbidden<T: std::fmt::Debug>(answer: Result<T, CommandError>) -> bool {
    matches!(answer, Err(CommandError::Forbidden(_)))
}

fn is_missing<T: std::fmt::Debug>(answer: Result<T, CommandError>) -> bool {
    matches!(answer, Err(CommandError::NotFound))
}

#[tokio::test]
async fn the_timer_of_another_tenant_does_not_exist() {
    let rig = Rig::new();
    let (a, b) =
        (rig.commands.on_behalf_of(holder(&["a"], Rights::Write)), rig.commands.on_behalf_of(holder(&["b"], Rights::Write)));
    let theirs = a.create(in_namespace("a")).await.unwrap().timer().clone();
    let own = b.create(in_namespace("b")).await.unwrap().timer().clone();
    let id = theirs.id();
    assert_ne!(id, own.id());
    let patch = Patch { correlation_id: crate::Field::Clear, ..Patch::default() };
    assert!(is_missing(b.get(id).await));
    assert!(is_missing(b.attempts(id).await));
    assert!(is_missing(b.update(id, &patch, None).await));
    assert!(is_missing(b.update(id, &Patch::default(), None).await));
    assert!(is_missing(b.fire(id, None).await));
    assert!(is_missing(b.cancel(id, None).await));
    assert!(is_missing(b.retry(id, None).await));
    assert!(is_missing(b.ping(id, None, None).await));
    assert!(is_missing(b.pause(id, None, None).await));
    assert!(is_missing(b.resume(id, None, Missed::Fire).await));
    assert!(is_forbidden(b.count_group(&namespace("a"), &group()).await));
    assert!(is_forbidden(b.cancel_group(&namespace("a"), &group()).await));
    assert!(is_missing(b.get(TimerId::keyed(&namespace("a"), &Key::parse("k").unwrap())).await));
    assert_eq!(a.get(id).await.unwrap(), theirs);

    let seen = b.list(&everything()).await.unwrap();
    assert_eq!((seen.total.timers, seen.page.timers[0].id), (1, own.id()));
    assert_eq!(b.cancel_matching(&all_pending()).await.unwrap().canceled, 1);
    assert_eq!(a.get(id).await.unwrap(), theirs);

    rig.settle_all(&Next::Failed { at: NOW, error: "no".to_owned() }).await;
    assert!(is_missing(b.retry(id, None).await));
    assert!(a.retry(id, None).await.is_ok());
}

#[tokio::test]
async fn what_a_caller_names_must_be_open_to_them() {
    let rig = Rig::new();
    let b = rig.commands.on_behalf_of(holder(&["b"], Rights::Write));
    let in_a = Filter { namespaces: vec![namespace("a")], ..Filter::default() };
    assert!(is_forbidden(b.create(in_namespace("a")).await));
    assert!(is_forbidden(b.create(plain()).await));
    assert!(is_forbidden(b.list(&ListQuery { filter: in_a.clone(), ..everything() }).await));
    assert!(is_forbidden(b.cancel_matching(&Selection { filter: in_a, ..all_pending() }).await));
    let answers = b.create_all(vec![in_namespace("a"), in_namespace("b"), plain()]).await;
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(rig.count().await, 1);
}

#[tokio::test]
async fn a_key_that_may_only_read_changes_nothing() {
    let rig = Rig::new();
    let id = rig.commands.create(in_namespace("a")).await.unwrap().timer().id();
    let reader = rig.commands.on_behalf_of(holder(&["a"], Rights::Read));
    assert!(reader.get(id).await.is_ok() && reader.attempts(id).await.is_ok() && reader.list(&everything()).await.is_ok());
    assert!(is_forbidden(reader.create(in_namespace("a")).await));
    assert!(is_forbidden(reader.create_all(vec![in_namespace("a")]).await.remove(0)));
    assert!(is_forbidden(reader.update(id, &Patch::default(), None).await));
    assert!(is_forbidden(reader.fire(id, None).await));
    assert!(is_forbidden(reader.cancel(id, None).await));
    assert!(is_forbidden(reader.retry(id, None).await));
    assert!(is_forbidden(reader.cancel_matching(&all_pending()).await));
    assert!(is_forbidden(reader.ping(id, None, None).await));
    assert!(is_forbidden(reader.pause(id, None, None).await));
    assert!(is_forbidden(reader.resume(id, None, Missed::Fire).await));
    assert!(is_forbidden(reader.cancel_group(&namespace("a"), &group()).await));
    assert!(reader.count_group(&namespace("a"), &group()).await.is_ok());
}

#[tokio::test]
async fn a_key_for_several_namespaces_that_names_none_means_all_of_its_own() {
    let rig = Rig::new();
    let both = rig.commands.on_behalf_of(holder(&["a", "b"], Rights::Write));
    for name in ["a", "b"] {
        both.create(in_namespace(name)).await.unwrap();
    }
    rig.commands.create(in_namespace("c")).await.unwrap();
    assert_eq!(both.list(&everything()).await.unwrap().total, 2);
    assert_eq!(both.count(&Filter::default()).await.unwrap(), 2);
    let in_a = Filter { namespaces: vec![namespace("a")], ..Filter::default() };
    assert_eq!(both.list(&ListQuery { filter: in_a, ..everything() }).await.unwrap().total, 1);
    let foreign = Filter { namespaces: vec![namespace("a"), namespace("c")], ..Filter::default() };
    assert!(is_forbidden(both.count(&foreign).await));
    assert_eq!(both.cancel_matching(&all_pending()).await.unwrap().canceled, 2);
}

#[tokio::test]
async fn what_is_meant_is_what_is_named_or_all_that_is_open() {
    let rig = Rig::new();
    rig.commands.create(in_namespace("a")).await.unwrap();
    let names = |names: &[&str]| names.iter().map(|name| namespace(name)).collect::<Vec<_>>();
    let both = holder(&["a", "b"], Rights::Read);
    let none = holder(&[], Rights::Read);
    for (caller, named, meant) in [
        (Caller::Administrator, &[][..], Some(&[][..])),
        (Caller::Administrator, &["c"], Some(&["c"])),
        (both.clone(), &[], Some(&["a", "b"])),
        (both.clone(), &["b"], Some(&["b"])),
        (both, &["b", "c"], None),
        (none.clone(), &[], None),
        (none.clone(), &["a"], None),
    ] {
        let commands = rig.commands.on_behalf_of(caller);
        let filter = Filter { namespaces: names(named), ..Filter::default() };
        let meant = meant.map(names);
        assert_eq!(commands.visible(&filter.namespaces).ok(), meant, "{named:?} {:?}", commands.caller);
        assert_eq!(commands.narrowed(&filter).ok().map(|filter| filter.namespaces), meant, "{named:?} {:?}", commands.caller);
    }
    // A stored key that opens nothing is not told what the administrator is.
    let none = rig.commands.on_behalf_of(none);
    let period = PeriodRequest::default();
    assert!(is_forbidden(none.due_buckets(&[], &period).await) && is_forbidden(none.fired_buckets(&[], &period).await));
    assert!(is_forbidden(none.destinations(&[]).await) && is_forbidden(none.namespaces().await));
    assert!(is_forbidden(none.list(&everything()).await) && is_forbidden(none.count(&Filter::default()).await));
}

#[tokio::test]
async fn keys_are_for_the_administrator() {
    let rig = Rig::new();
    let (key, _) = rig.commands.create_key("k", Access::FULL, [7; 32]).await.unwrap();
    let holder = rig.commands.on_behalf_of(Caller::Holder(Arc::new(key.clone())));
    assert!(is_forbidden(holder.create_key("k2", Access::FULL, [8; 32]).await));
    assert!(is_forbidden(holder.keys().await));
    assert!(is_forbidden(holder.cluster().await));
    assert!(is_forbidden(holder.revoke_key(key.id).await));
    // The key grants every namespace all the same.
    assert!(holder.create(in_namespace("a")).await.is_ok());
}
