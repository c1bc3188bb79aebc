use super::*;

const SHARD: Shard = Shard(0);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn entry(seconds: i64, number: u128, destination: u64) -> DueEntry {
    DueEntry { at: at(seconds), id: TimerId::from_uuid(uuid(number)), destination: Destination(destination) }
}

fn uuid(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

/// A window of one shard that has been read up to `loaded` seconds.
fn window(budget: usize, loaded: i64, entries: &[DueEntry]) -> Window {
    let mut window = Window::new(1, budget, ConcurrencyLimit::new(1000, 1000));
    window.open(SHARD);
    let from = window.begin_load(at(loaded), at(loaded));
    window.end_load(&from, entries, at(loaded), usize::MAX);
    window
}

fn numbers(entries: &[DueEntry]) -> Vec<u128> {
    entries.iter().map(|entry| entry.id.as_uuid().as_u128()).collect()
}

fn fire(window: &mut Window, seconds: i64) -> Vec<u128> {
    while window.promote(at(seconds), 10) {}
    numbers(&window.take(usize::MAX))
}

#[test]
fn nothing_fires_before_its_time_and_the_oldest_fires_first() {
    let mut window = window(100, 100, &[entry(3, 1, 7), entry(1, 2, 7), entry(2, 3, 7)]);
    assert_eq!(fire(&mut window, 0), Vec::<u128>::new());
    assert_eq!(fire(&mut window, 2), [2, 3]);
    assert_eq!(fire(&mut window, 3), [1]);
}

#[test]
fn destinations_take_turns() {
    let mut window = window(100, 100, &[entry(1, 1, 7), entry(1, 2, 7), entry(1, 3, 7), entry(2, 4, 8), entry(2, 5, 9)]);
    window.promote(at(5), 10);
    assert_eq!(numbers(&window.take(3)), [1, 4, 5]);
    assert_eq!(numbers(&window.take(3)), [2, 3]);
}

#[test]
fn a_batch_is_in_the_order_of_due_times_and_ids() {
    let mut window = window(100, 100, &[entry(1, 1, 7), entry(1, 2, 7), entry(1, 3, 7), entry(2, 4, 8), entry(2, 5, 9)]);
    window.promote(at(5), 10);
    assert_eq!(numbers(&window.take(4)), [1, 2, 4, 5]);
}

#[test]
fn a_destination_without_free_permits_is_passed_over() {
    let mut window = Window::new(1, 100, ConcurrencyLimit::new(100, 1));
    window.open(SHARD);
    let entries = [entry(1, 1, 7), entry(1, 2, 7), entry(2, 3, 8)];
    let from = window.begin_load(at(9), at(9));
    window.end_load(&from, &entries, at(9), usize::MAX);
    assert_eq!(fire(&mut window, 5), [1, 3]);
    window.done(&entries[0]);
    assert_eq!(fire(&mut window, 5), [2]);
}

#[test]
fn work_is_what_is_due_and_has_a_permit() {
    let mut window = Window::new(1, 100, ConcurrencyLimit::new(1000, 2));
    window.open(SHARD);
    let entries = [entry(1, 1, 7), entry(1, 2, 7), entry(1, 3, 7), entry(1, 4, 8), entry(9, 5, 9)];
    let from = window.begin_load(at(9), at(9));
    window.end_load(&from, &entries, at(9), usize::MAX);
    assert!(!window.has_work_for(1), "nothing is due yet");
    window.promote(at(5), 10);
    assert!(window.has_work_for(3) && !window.has_work_for(4), "two permits for one receiver, one timer for another");
    assert_eq!(numbers(&window.take(10)), [1, 2, 4]);
    assert!(!window.has_work_for(1));
    window.called(&entries[0]);
    assert!(window.has_work_for(1));
}

#[test]
fn what_is_in_line_or_in_flight_does_not_enter_again() {
    let one = entry(1, 1, 7);
    let mut window = window(100, 100, &[one]);
    assert!(!window.repair(one), "it is upcoming");
    window.promote(at(5), 10);
    assert!(!window.repair(one), "it is ready");
    assert_eq!(numbers(&window.take(10)), [1]);
    assert!(!window.repair(one), "it is in flight");
    window.done(&one);
    assert!(window.repair(one), "it was settled, and is said to be pending again");
}

#[test]
fn a_timer_in_flight_that_gets_a_new_time_enters_with_it() {
    let old = entry(1, 1, 7);
    let new = entry(50, 1, 7);
    let mut window = window(100, 100, &[old]);
    assert_eq!(fire(&mut window, 5), [1]);
    assert!(window.admit(new));
    window.done(&old);
    assert_eq!(fire(&mut window, 49), Vec::<u128>::new());
    assert_eq!(fire(&mut window, 50), [1]);
}

#[test]
fn what_lies_beyond_the_loaded_part_is_left_to_the_next_load() {
    let mut window = window(100, 100, &[]);
    assert!(window.admit(entry(100, 1, 7)));
    assert!(!window.admit(entry(101, 2, 7)));
    assert_eq!(window.len(), 1);
}

#[test]
fn a_timer_created_during_a_load_is_not_missed() {
    let mut window = window(100, 100, &[]);
    let from = window.begin_load(at(150), at(200));
    // The load has read the store already; this one came too late for it.
    assert!(window.admit(entry(180, 1, 7)));
    window.end_load(&from, &[], at(200), usize::MAX);
    assert_eq!(fire(&mut window, 180), [1]);
}

#[test]
fn a_full_page_is_read_on_from_its_last_entry() {
    let mut window = Window::new(1, 100, ConcurrencyLimit::new(100, 100));
    window.open(SHARD);
    let from = window.begin_load(at(50), at(50));
    assert_eq!(from, [ShardCursor { shard: SHARD, after: None }]);
    let page = [entry(1, 1, 7), entry(1, 2, 7)];
    assert_eq!(window.end_load(&from, &page, at(50), 2), (2, true));
    let from = window.begin_load(at(50), at(50));
    assert_eq!(from[0].after, Some((at(1), TimerId::from_uuid(uuid(2)))));
    assert_eq!(window.end_load(&from, &[], at(50), 2), (0, false));
    assert!(window.begin_load(at(50), at(50)).is_empty(), "everything has been read");
}

#[test]
fn over_budget_the_farthest_entries_go_and_are_read_again_later() {
    let mut window = window(3, 100, &[entry(10, 1, 7), entry(20, 2, 7), entry(30, 3, 7), entry(40, 4, 7)]);
    assert_eq!(window.len(), 3);
    assert!(!window.admit(entry(50, 5, 7)), "beyond what is held now");
    let from = window.begin_load(at(100), at(100));
    assert_eq!(from[0].after, Some((at(40), TimerId::from_uuid(uuid(3)))), "the one that went is read again");
}

#[test]
fn a_closed_shard_leaves_nothing_behind_but_what_is_being_delivered() {
    let in_flight = entry(1, 1, 7);
    let mut window = window(100, 100, &[in_flight, entry(50, 3, 7)]);
    assert_eq!(fire(&mut window, 1), [1]);
    window.repair(entry(2, 2, 8));
    window.promote(at(2), 10);
    window.close(SHARD);
    assert_eq!((window.len(), window.in_flight()), (0, 1));
    assert!(!window.repair(entry(3, 4, 7)), "the shard is not ours");
    window.done(&in_flight);
    assert_eq!(window.in_flight(), 0);
    window.open(SHARD);
    assert!(window.repair(in_flight));
}

#[test]
fn a_timer_that_gets_another_destination_is_still_one_timer() {
    let mut window = window(100, 100, &[entry(1, 1, 7)]);
    assert!(!window.admit(entry(1, 1, 8)), "it is upcoming already");
    window.promote(at(5), 10);
    let taken = window.take(10);
    assert_eq!(taken, [entry(1, 1, 8)], "with the newer destination");
    assert!(!window.admit(entry(1, 1, 9)), "it is in flight");
    window.done(&entry(1, 1, 9));
    assert_eq!(window.in_flight(), 0, "its permit is free, whatever destination it has now");
}

#[test]
fn a_permit_is_given_back_once() {
    let entries = [entry(1, 1, 7), entry(1, 2, 7)];
    let mut window = window(100, 100, &entries);
    assert_eq!(fire(&mut window, 5), [1, 2]);
    window.done(&entries[0]);
    window.done(&entries[0]);
    assert_eq!(window.in_flight(), 1);
}

#[test]
fn a_backlog_of_one_destination_does_not_fill_the_window() {
    const BUDGET: usize = 10_000;
    let mut window = Window::new(1, BUDGET, ConcurrencyLimit::new(8, 2));
    window.open(SHARD);
    let from = window.begin_load(at(0), at(1000));
    window.end_load(&from, &[], at(1000), usize::MAX);
    for number in 0..50_000 {
        window.repair(entry(1, number + 1, 7));
        window.promote(at(5), 10);
    }
    assert!(window.len() <= BUDGET / 3, "{}", window.len());
    window.take(100);
    assert!(window.admit(entry(6, 100_000, 8)), "another one finds room");
    assert_eq!(fire(&mut window, 6), [100_000], "and its turn");
}

#[test]
fn the_oldest_is_the_one_that_waits_for_longest() {
    let mut window = window(100, 100, &[entry(3, 1, 7), entry(9, 2, 7)]);
    assert_eq!(window.oldest(), Some(at(3)));
    window.promote(at(3), 10);
    assert_eq!(window.oldest(), Some(at(3)));
    window.take(10);
    assert_eq!(window.oldest(), Some(at(9)));
}

#[test]
fn what_could_not_be_claimed_is_due_again() {
    let one = entry(1, 1, 7);
    let mut window = window(100, 100, &[one]);
    assert_eq!(fire(&mut window, 5), [1]);
    window.put_back(&[one]);
    assert_eq!(window.in_flight(), 0);
    assert_eq!(fire(&mut window, 5), [1]);
}

/// An entry of a tenant, to a receiver of it.
fn entry_of(tenant: u64, seconds: i64, number: u128, receiver: u64) -> DueEntry {
    entry(seconds, number, tenant << 40 | receiver)
}

#[test]
fn a_tenant_with_thousands_of_receivers_that_hang_delays_no_other() {
    const HANGING: u128 = 3_000;
    let mut entries: Vec<_> = (1..=HANGING).map(|number| entry_of(1, 1, number, number as u64)).collect();
    entries.push(entry_of(2, 2, 5_000, 1));
    let mut window = window(100_000, 100, &entries);
    // Small ones are expected, so that memory is no limit.
    (0..5).for_each(|_| window.record_sizes(std::iter::empty()));
    let hanging = fire(&mut window, 1);
    assert_eq!((hanging.len(), window.is_exhausted()), (750, true), "three quarters of the permits");
    assert!(fire(&mut window, 1).is_empty());
    assert_eq!(fire(&mut window, 2), [5_000]);
    assert!(window.is_exhausted(), "the first still has some that wait");
    window.done(&entries[0]);
    assert_eq!(fire(&mut window, 3).len(), 1, "one for one");
}

#[test]
fn a_receiver_that_has_all_its_permits_does_not_exhaust_them() {
    let mut window = Window::new(1, 100, ConcurrencyLimit::new(100, 1));
    window.open(SHARD);
    let from = window.begin_load(at(9), at(9));
    window.end_load(&from, &[entry(1, 1, 7), entry(1, 2, 7)], at(9), usize::MAX);
    assert_eq!(fire(&mut window, 5), [1]);
    assert!(!window.is_exhausted());
}

#[test]
fn what_is_overdue_is_not_taken_in_again_while_its_tenant_has_no_room() {
    let mut window = Window::new(1, 400, ConcurrencyLimit::new(8, 2));
    window.open(SHARD);
    for number in 0..10_000 {
        window.find(entry_of(1, 1, number + 1, number as u64));
        window.promote(at(5), 10);
    }
    assert_eq!(window.len(), 300);
    assert!(!window.find(entry_of(1, 1, 20_000, 5)));
    assert!(window.find(entry_of(2, 1, 20_001, 5)));
    assert_eq!(fire(&mut window, 5).len(), 7, "six for the first tenant, one for the other");
}

#[test]
fn a_sweep_looks_deep_only_where_something_due_is_in_the_store_alone() {
    let entries: Vec<_> = (0..300).map(|number| entry(1, number, 7)).collect();
    let mut window = window(100_000, 10, &entries);
    assert!(window.begin_sweep(at(10)), "everything up to here has been read");
    assert!(!window.begin_sweep(at(11)), "the last second has not been read yet");

    let mut window = self::window(301, 10, &entries);
    while window.promote(at(5), 10) {}
    assert!(window.len() < entries.len(), "a line has no room for all of them");
    assert!(!window.begin_sweep(at(5)), "some were turned away");
    assert!(window.begin_sweep(at(5)), "the sweep before has looked for them");
    assert!(!window.find(entries[299]), "there is still no room");
    assert!(!window.find(entries[0]) && !window.begin_sweep(at(5)), "the next sweep has to look again");
}
