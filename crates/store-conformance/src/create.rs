//! Registering timers: the answers, and how taken ids are resolved.

use domain::{Definition, Expiry, NewTimer, OnConflict, Resolution, RetryPolicy, Status, Timer, Times, resolve};
use store::Created;

use crate::{
    Draft, Fixture, NOW, Stage, ahead, millis, secs,
    stage::{entry, retried},
    timer,
};

pub async fn a_new_timer_is_pending_and_comes_back_as_it_was_written(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = timer("http://a.example/hook").due_in(secs(5));
    let new = draft.clone().build();

    let created = stage.create(draft).await;

    let expected = Timer {
        definition: new.definition,
        execute_at: ahead(secs(5)),
        status: Status::Pending,
        attempt: 0,
        last_error: None,
        executed_at: None,
        created_at: NOW,
        updated_at: NOW,
        revision: 1,
        pause: None,
    };
    assert_eq!(created, expected);
    assert_eq!(stage.get(created.id()).await, expected);
}

pub async fn every_field_of_a_definition_comes_back(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let policy = RetryPolicy {
        max_retries: 7,
        initial_interval: millis(1500),
        backoff_multiplier: 1.1,
        max_interval: secs(90),
        max_duration: Some(secs(86_400)),
    };
    let drafts = [
        timer("https://a.example:8443/path?x=%20y")
            .header("X-Order", "b")
            .header("Authorization", "Bearer t")
            .payload(r#"{"z":1,"a":[1.10]}"#)
            .namespace("tenant")
            .key("k-1")
            .metadata(r#"{"who":"me"}"#)
            .correlation_id("c-1")
            .retry_policy(policy)
            .at_most_once()
            .after(secs(90)),
        timer("http://a.example/").publishing("orders.late").header("N", "v").payload("[1]"),
        timer("http://a.example/").announcing().namespace("tenant").key("call-1").correlation_id("c-2"),
        timer("http://a.example/").retry_policy(RetryPolicy::default()),
        timer("http://a.example/").expiring(Expiry::At(ahead(secs(7)))),
        timer("http://a.example/").key("k-2").expiring(Expiry::After(millis(1500))),
        timer("http://a.example/").postpone_max(secs(7)),
        timer("http://a.example/").group("é 😀"),
        timer("http://a.example/").telling("http://b.example/"),
        timer("http://a.example/").traced("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ];
    for draft in drafts {
        let definition = draft.clone().build().definition;
        let created = stage.create(draft).await;
        assert_eq!(created.definition, definition);
        assert_eq!(stage.get(created.id()).await, created);
    }
}

/// Without a key only `reject` can be asked for.
pub async fn a_chosen_id_is_the_same_timer_only_with_the_same_content(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for (number, status) in (1..).zip(Status::ALL) {
        let draft = timer("http://a.example/").payload("1").metadata("[1, 2]").numbered(number);
        let first = stage.in_status(draft.clone(), status).await;
        let others = [
            draft.clone().payload("2"),
            draft.clone().metadata("[2]"),
            draft.clone().namespace("tenant"),
            draft.clone().due_in(secs(60)),
        ];
        let same = draft.metadata("[1,2]").created_at(ahead(secs(9)));
        let batch: Vec<_> = std::iter::once(same).chain(others).collect();
        let answers = stage.create_all(batch).await;
        assert_eq!(answers[0], Created::Existing(first.clone()), "{status}");
        for answer in &answers[1..] {
            assert_eq!(*answer, Created::Conflict(first.clone()), "{status}");
        }
        assert_eq!(stage.get(first.id()).await, first, "{status}");
    }
}

pub async fn a_chosen_id_is_known_again_after_an_update_only_with_the_new_content(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let (old, new) = (timer("http://a.example/").payload("1").numbered(1), timer("http://a.example/").payload("2").numbered(1));
    let first = stage.create(old.clone()).await;
    let changed = stage.update(&Timer { definition: new.clone().build().definition, ..first }, NOW).await;
    assert_eq!(stage.create_all(vec![old]).await, [Created::Conflict(changed.clone())]);
    assert_eq!(stage.create_all(vec![new]).await, [Created::Existing(changed)]);
}

// ── Taken ids ──────────────────────────────────────────────────────────────────────────────────────────────

pub async fn reject_gives_the_same_timer_back_and_refuses_another(fixture: impl Fixture) {
    taken_ids_are_resolved(fixture, OnConflict::Reject).await;
}

pub async fn replace_overwrites_what_is_pending_and_revives_what_has_ended(fixture: impl Fixture) {
    taken_ids_are_resolved(fixture, OnConflict::Replace).await;
}

pub async fn keep_moves_what_is_pending_and_nothing_else(fixture: impl Fixture) {
    taken_ids_are_resolved(fixture, OnConflict::Keep).await;
}

pub async fn postpone_moves_what_is_pending_and_revives_what_has_ended(fixture: impl Fixture) {
    taken_ids_are_resolved(fixture, OnConflict::Postpone).await;
}

pub async fn earliest_moves_what_is_pending_to_an_earlier_time_only(fixture: impl Fixture) {
    taken_ids_are_resolved(fixture, OnConflict::Earliest).await;
}

pub async fn latest_moves_what_is_pending_to_a_later_time_only(fixture: impl Fixture) {
    taken_ids_are_resolved(fixture, OnConflict::Latest).await;
}

pub async fn a_timer_is_postponed_up_to_its_limit(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = timer("http://a.example/").key("k").after(secs(10)).postpone_max(secs(30));
    let first = stage.create(draft.clone()).await;
    let mut revision = first.revision;
    for (now, due, is_moved) in [(0, 10, false), (15, 25, true), (25, 30, true), (29, 30, false)] {
        // Neither the content nor the limit of a later request counts.
        let again = timer("http://b.example/").key("k").postpone_max(secs(9_999)).created_at(ahead(secs(now))).after(secs(10));
        let answer = stage.create_all(vec![again.on_conflict(OnConflict::Postpone)]).await.remove(0);
        revision += u32::from(is_moved);
        assert_eq!(matches!(answer, Created::Replaced(_)), is_moved, "after {now} s: {answer:?}");
        let expected = Timer { execute_at: ahead(secs(due)), revision, updated_at: answer.timer().updated_at, ..first.clone() };
        assert_eq!(answer.timer(), &expected, "after {now} s");
        assert_eq!(stage.get(first.id()).await, expected);
        assert_eq!(stage.due_of(first.id()).await, [entry(&expected)]);
    }
}

pub async fn a_timer_takes_no_time_at_which_it_has_expired(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for mode in [OnConflict::Keep, OnConflict::Postpone, OnConflict::Latest, OnConflict::Earliest] {
        let draft = timer("http://a.example/").key(&format!("{mode:?}")).due_in(secs(5)).expiring(Expiry::At(ahead(secs(60))));
        let before = stage.create(draft).await;
        // The expiry of a later request does not count.
        let again = |at| timer("http://b.example/").key(&format!("{mode:?}")).due_in(at).on_conflict(mode);
        let answer = stage.create_all(vec![again(secs(60))]).await;
        let is_later = mode != OnConflict::Earliest;
        let unchanged = if is_later { Created::PastExpiry(before.clone()) } else { Created::Existing(before.clone()) };
        assert_eq!(answer, [unchanged], "{mode:?}");
        assert_eq!(stage.get(before.id()).await, before, "{mode:?}");
        let at = if is_later { secs(59) } else { secs(3) };
        let moved = stage.create_all(vec![again(at)]).await.remove(0);
        assert!(matches!(&moved, Created::Replaced(timer) if timer.execute_at == ahead(at)), "{moved:?}");
    }
}

/// The table of [`domain::resolve`], as the store implements it: for each status, the same content, other content, another
/// time, another kind.
async fn taken_ids_are_resolved(fixture: impl Fixture, mode: OnConflict) {
    let stage = Stage::set(&fixture).await;
    for status in Status::ALL {
        for variant in ["the same", "other content", "another time", "an earlier time", "an event instead"] {
            let case = format!("{mode:?} meets {status} with {variant}");
            let draft = timer("http://old.example/").key(&case).payload(r#"{"a":1}"#).due_in(secs(5));
            let before = stage.in_status(draft.clone(), status).await;
            let again = draft.created_at(ahead(secs(1))).on_conflict(mode);
            let new = match variant {
                "other content" => again.payload("2").metadata(r#"{"new":true}"#).build(),
                "another time" => again.due_in(secs(90)).build(),
                "an earlier time" => again.due_in(secs(2)).build(),
                "an event instead" => again.announcing().due_in(secs(90)).build(),
                _ => again.build(),
            };
            let expected = expected(&before, &new);

            let answer = stage.store.create(vec![new]).await.unwrap().remove(0);

            assert_eq!(answer, expected, "{case}");
            assert_eq!(&stage.get(before.id()).await, expected.timer(), "{case}: what is read afterwards");
            let due: Vec<_> = stage.due(ahead(secs(600))).await.into_iter().filter(|due| due.id == before.id()).collect();
            let is_pending = expected.timer().status == Status::Pending;
            assert_eq!(due, if is_pending { vec![entry(expected.timer())] } else { vec![] }, "{case}: what is due afterwards");
        }
    }
}

/// The expected answer to `new`, when `before` has its id.
fn expected(before: &Timer, new: &NewTimer) -> Created {
    let replaced = |definition: Definition| Timer {
        definition,
        execute_at: new.execute_at,
        // What is paused stays paused.
        status: if before.status == Status::Paused { Status::Paused } else { Status::Pending },
        attempt: 0,
        last_error: None,
        executed_at: None,
        created_at: before.created_at,
        updated_at: new.created_at,
        revision: before.revision + 1,
        pause: before.pause.clone(),
    };
    let (old, new_one) = (&before.definition, &new.definition);
    match resolve(new.on_conflict, before.status, old.content(), new_one.content(), Times::of(before, new.execute_at)) {
        Resolution::Existing => Created::Existing(before.clone()),
        Resolution::Conflict => Created::Conflict(before.clone()),
        Resolution::PastExpiry => Created::PastExpiry(before.clone()),
        Resolution::Overwrite => Created::Replaced(replaced(new_one.clone())),
        Resolution::Move(at) => {
            let definition = Definition { asked: new_one.asked.clone(), ..old.clone() };
            Created::Replaced(Timer { execute_at: at, ..replaced(definition) })
        }
        Resolution::Revive => Created::Replaced(Timer { created_at: new.created_at, ..replaced(new_one.clone()) }),
    }
}

pub async fn blanks_between_json_tokens_do_not_make_another_timer(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = timer("http://a.example/").key("k");
    let first = stage.create(draft.clone().payload(r#"{"a":1}"#)).await;
    let again = stage.create_all(vec![draft.clone().payload(r#"{ "a" : 1 }"#)]).await;
    assert_eq!(again, [Created::Existing(first.clone())]);
    let other = stage.create_all(vec![draft.payload(r#"{"a":1.0}"#)]).await;
    assert_eq!(other, [Created::Conflict(first)]);
}

pub async fn the_same_delay_asked_for_later_is_the_same_timer(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let first = stage.create(timer("http://a.example/").key("k").after(secs(90))).await;
    let later = timer("http://a.example/").key("k").created_at(ahead(secs(30))).after(secs(90));
    assert_eq!(stage.create_all(vec![later]).await, [Created::Existing(first)]);
}

pub async fn a_repeated_request_is_known_again_after_an_update_only_with_the_new_content(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let (old, new) = (timer("http://a.example/").key("k").payload("1"), timer("http://a.example/").key("k").payload("2"));
    let mut changed = stage.create(old.clone()).await;
    changed.definition = new.clone().build().definition;
    let changed = stage.update(&changed, NOW).await;

    assert_eq!(stage.create_all(vec![new]).await, [Created::Existing(changed.clone())]);
    assert_eq!(stage.create_all(vec![old]).await, [Created::Conflict(changed)]);
}

pub async fn an_overwritten_or_moved_timer_starts_its_attempts_over(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    for mode in [OnConflict::Replace, OnConflict::Keep, OnConflict::Postpone, OnConflict::Latest] {
        let draft = timer("http://a.example/").key(&format!("{mode:?}"));
        let tried = retried(&stage, draft.clone(), ahead(secs(200))).await;
        assert_eq!((tried.attempt, tried.last_error.as_deref()), (1, Some("HTTP 503")));

        let answer = stage.create_all(vec![draft.due_in(secs(90)).on_conflict(mode)]).await.remove(0);

        let Created::Replaced(replaced) = answer else { panic!("{mode:?}: {answer:?}") };
        assert_eq!((replaced.attempt, replaced.last_error.clone()), (0, None), "{mode:?}");
        assert_eq!(stage.get(replaced.id()).await, replaced);
        let due: Vec<_> = stage.due(ahead(secs(600))).await.into_iter().filter(|due| due.id == replaced.id()).collect();
        assert_eq!(due, [entry(&replaced)], "{mode:?}: the old retry is gone");
    }
}

pub async fn a_revived_timer_can_be_delivered_again(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = timer("http://a.example/").key("k");
    stage.in_status(draft.clone(), Status::Failed).await;
    let answer = stage.create_all(vec![draft.due_in(secs(5)).on_conflict(OnConflict::Replace)]).await.remove(0);
    let Created::Replaced(revived) = answer else { panic!("{answer:?}") };
    let claimed = stage.claim_one(&revived).await;
    assert_eq!(claimed.attempt, 1);
    assert_eq!(claimed.timer.unwrap().last_error, None);
}

// ── Batches ────────────────────────────────────────────────────────────────────────────────────────────────

pub async fn a_refused_timer_does_not_hinder_its_neighbours(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = |key: &str| timer("http://a.example/").key(key);
    let taken = stage.create(draft("taken").payload("1")).await;
    let answers = stage.create_all(vec![draft("before"), draft("taken").payload("2"), draft("after")]).await;
    assert!(matches!(&answers[0], Created::Created(_)), "{:?}", answers[0]);
    assert_eq!(answers[1], Created::Conflict(taken.clone()));
    assert!(matches!(&answers[2], Created::Created(_)), "{:?}", answers[2]);
    for answer in &answers {
        assert_eq!(&stage.get(answer.timer().id()).await, answer.timer());
    }
}

pub async fn answers_come_in_the_order_of_the_batch(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    // Shuffled numbers, so that neither the order of ids nor that of shards is the order of the batch.
    let numbers: Vec<u64> = (0..200).map(|n| n * 7_919 % 200).collect();
    let draft = |number: u64| timer("http://a.example/").numbered(number).payload(&number.to_string());
    stage.create_new(numbers.iter().filter(|number| *number % 3 == 0).map(|number| draft(*number)).collect()).await;

    let answers = stage.create_all(numbers.iter().map(|number| draft(*number)).collect()).await;

    for (number, answer) in numbers.into_iter().zip(answers) {
        assert_eq!(answer.timer().id(), draft(number).id());
        assert_eq!(matches!(answer, Created::Existing(_)), number % 3 == 0, "{number}: {answer:?}");
    }
}

pub async fn ids_that_repeat_within_a_batch_count_in_its_order(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let draft = |payload: &str| timer("http://a.example/").key("k").payload(payload);
    let replacing = |payload: &str| draft(payload).on_conflict(OnConflict::Replace);
    let keeping = |payload: &str| draft(payload).on_conflict(OnConflict::Keep).due_in(secs(60));

    let answers = stage.create_all(vec![draft("1"), draft("1"), draft("2"), replacing("3"), keeping("4"), draft("1")]).await;

    let payload = |answer: &Created| answer.timer().definition.callback.payload().unwrap().as_str().to_owned();
    assert!(matches!(&answers[0], Created::Created(new) if new.revision == 1), "{:?}", answers[0]);
    assert!(matches!(&answers[1], Created::Existing(_)), "{:?}", answers[1]);
    assert!(matches!(&answers[2], Created::Conflict(_)), "{:?}", answers[2]);
    assert!(matches!(&answers[3], Created::Replaced(new) if new.revision == 2), "{:?}", answers[3]);
    assert!(matches!(&answers[4], Created::Replaced(new) if new.revision == 3), "{:?}", answers[4]);
    assert!(matches!(&answers[5], Created::Conflict(_)), "{:?}", answers[5]);
    assert_eq!(answers.iter().map(payload).collect::<Vec<_>>(), ["1", "1", "1", "3", "3", "3"]);
    let last = stage.get(answers[0].timer().id()).await;
    assert_eq!(&last, answers[5].timer());
    assert_eq!(last.execute_at, ahead(secs(60)));
    assert_eq!(stage.due(ahead(secs(600))).await, [entry(&last)]);
}

pub async fn a_thousand_timers_are_registered_at_once(fixture: impl Fixture) {
    let stage = Stage::set(&fixture).await;
    let drafts: Vec<_> = (0..1_000).map(|number| timer("http://a.example/").numbered(number).due_in(secs(1))).collect();
    let created = stage.create_new(drafts.clone()).await;
    assert_eq!(created.iter().map(Timer::id).collect::<Vec<_>>(), drafts.iter().map(Draft::id).collect::<Vec<_>>());
    assert_eq!(stage.store.count(&store::Filter::default(), store::SEARCH_BUDGET).await.unwrap(), 1_000);
    assert_eq!(stage.due(NOW).await, []);
    assert_eq!(stage.due(ahead(secs(1))).await.len(), 1_000);
}
