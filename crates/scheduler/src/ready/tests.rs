use domain::TimerId;

use super::*;

fn position(number: u128) -> Position {
    (Timestamp::from_micros(number as i64), TimerId::from_uuid(uuid::Uuid::from_u128(number)))
}

const fn called_by(tenant: u64, receiver: u64) -> Destination {
    Destination(tenant << 40 | receiver)
}

/// Lines with these entries, numbered in this order.
fn ready(destinations: impl IntoIterator<Item = Destination>) -> Ready {
    let mut ready = Ready::default();
    destinations.into_iter().zip(1..).for_each(|(destination, number)| ready.push(destination, position(number)));
    ready
}

/// The numbers of what starts, as `start` says.
fn take(ready: &mut Ready, limit: usize, start: impl Fn(Destination) -> Start) -> Vec<u128> {
    let mut taken = Vec::new();
    ready.take(limit, |destination, (_, id)| {
        let start = start(destination);
        if start == Start::Now {
            taken.push(id.as_uuid().as_u128());
        }
        start
    });
    taken
}

#[test]
fn tenants_take_turns_and_so_do_the_destinations_of_a_tenant() {
    let [a, b, c] = [called_by(1, 1), called_by(1, 2), called_by(2, 1)];
    let mut ready = ready([a, a, b, c, c, c]);
    assert_eq!(take(&mut ready, 4, |_| Start::Now), [1, 4, 3, 5]);
    assert_eq!(take(&mut ready, 4, |_| Start::Now), [2, 6]);
    assert_eq!((ready.len(), ready.oldest()), (0, None));
}

#[test]
fn thousands_of_destinations_of_one_tenant_do_not_delay_the_one_of_another() {
    let mut ready = ready((0..5_000).map(|receiver| called_by(1, receiver)).chain([called_by(2, 1)]));
    assert_eq!(take(&mut ready, 2, |_| Start::Now), [1, 5_001]);
}

#[test]
fn a_tenant_that_has_to_wait_is_asked_about_once_and_keeps_its_place() {
    let mut ready = ready((0..100).map(|receiver| called_by(1, receiver)).chain([called_by(2, 1), called_by(2, 1)]));
    let mut asked = 0;
    let is_any_waiting = ready.take(10, |destination, _| {
        asked += 1;
        if destination.tenant() == called_by(1, 0).tenant() { Start::NotForTenant } else { Start::Now }
    });
    assert!(is_any_waiting);
    assert_eq!((asked, ready.len()), (3, 100));
    assert_eq!(take(&mut ready, 2, |_| Start::Now), [1, 2]);
}

#[test]
fn a_destination_that_has_to_wait_is_not_asked_about_until_a_permit_of_its_receiver_is_back() {
    let mut ready = ready([called_by(1, 1), called_by(1, 2), called_by(2, 1)]);
    let first = called_by(1, 1).receiver();
    let at_its_limit =
        |destination: Destination| if destination.receiver() == first { Start::NotForDestination } else { Start::Now };
    assert_eq!(take(&mut ready, 9, at_its_limit), [2]);
    ready.push(called_by(1, 1), position(4));
    assert_eq!(take(&mut ready, 9, |_| Start::Now), [0; 0], "parked, for both tenants");
    assert!(!ready.is_worth(1, |_| 9, |_| 9));
    ready.unpark(called_by(1, 2).receiver());
    assert_eq!(take(&mut ready, 9, |_| Start::Now), [0; 0], "another receiver's permit");
    ready.unpark(first);
    assert_eq!(take(&mut ready, 9, |_| Start::Now), [1, 3, 4]);
}

#[test]
fn what_is_parked_can_be_looked_at_again() {
    let mut ready = ready([called_by(1, 1), called_by(2, 2)]);
    assert!(!ready.unpark_all());
    assert_eq!(take(&mut ready, 9, |_| Start::NotForDestination), [0; 0]);
    assert!(ready.unpark_all());
    assert_eq!(take(&mut ready, 9, |_| Start::Now).len(), 2);
}

#[test]
fn a_tenant_with_very_many_destinations_leaves_space_for_other_tenants() {
    const BUDGET: usize = 100_000;
    let mut ready = Ready::default();
    let mut fill = |tenant: u64, receivers: u64, each: usize| {
        let before = ready.len();
        for receiver in 0..receivers {
            for _ in 0..each {
                let destination = called_by(tenant, receiver);
                if ready.has_capacity(destination, BUDGET) {
                    ready.push(destination, position(1));
                }
            }
        }
        ready.len() - before
    };
    assert_eq!(fill(1, 10_000, 100), BUDGET / 4 * 3);
    assert_eq!(fill(2, 1, 100_000), 6_250, "one line of another tenant: a third of what that tenant may have");
    assert_eq!(fill(3, 1, 100), 100);
    for tenant in 4..100 {
        assert!(fill(tenant, 10, 1_000) >= 256, "each has room for some");
    }
}

#[test]
fn a_tenant_may_have_as_many_as_its_permits_allow() {
    let ready = ready((0..50).map(|receiver| called_by(1, receiver)).chain((0..50).map(|_| called_by(2, 1))));
    assert!(ready.is_worth(100, |_| 100, |_| 100) && !ready.is_worth(101, |_| 100, |_| 100));
    assert!(ready.is_worth(60, |_| 30, |_| 100) && !ready.is_worth(61, |_| 30, |_| 100));
    assert!(ready.is_worth(51, |_| 100, |_| 1) && !ready.is_worth(52, |_| 100, |_| 1));
}

#[test]
fn what_goes_leaves_nothing_behind() {
    let mut ready = ready([called_by(1, 1), called_by(1, 2), called_by(2, 3), called_by(2, 3)]);
    take(&mut ready, 9, |_| Start::NotForDestination);
    ready.retain(|(_, id)| id.as_uuid().as_u128() == 4);
    assert_eq!((ready.len(), ready.oldest()), (1, Some(position(4).0)));
    assert_eq!(take(&mut ready, 9, |_| Start::Now), [4]);
    ready.retain(|_| false);
    assert!(ready.lines.is_empty() && ready.tenants.is_empty() && ready.rotation.is_empty() && ready.parked.is_empty());
}
