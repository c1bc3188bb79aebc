//! The suite can fail: each of these stores has one planted bug, and the behaviour named for it detects it.
//!
//! All of them are the model behind a wrapper that lies in one way. The same behaviour passes when the wrapper is honest.

mod planted;

use std::panic::{AssertUnwindSafe, catch_unwind};

use planted::{Bug, Planted};

macro_rules! caught {
    ($($test:ident: $bug:ident by $module:ident::$behaviour:ident;)*) => {
        $(
            #[test]
            fn $test() {
                let behaves = |bug: Option<Bug>| {
                    let behaviour = store_conformance::compiled::$module::$behaviour;
                    let behaviour = || store_conformance::run(async { Planted::new(bug) }, behaviour);
                    catch_unwind(AssertUnwindSafe(behaviour)).is_ok()
                };
                assert!(behaves(None), "an honest store passes");
                assert!(!behaves(Some(Bug::$bug)), "the bug went unnoticed");
            }
        )*

        /// A planted bug that no behaviour is named for would prove nothing.
        #[test]
        fn every_planted_bug_is_looked_for() {
            let looked_for = [$(Bug::$bug),*];
            for bug in Bug::ALL {
                assert!(looked_for.contains(&bug), "{bug:?}");
            }
        }
    };
}

caught! {
    a_cancel_without_its_condition: CancelWhateverTheStatus by change::a_cancel_meets_what_is_not_pending;
    a_cancel_that_races_a_claim: CancelWhateverTheStatus by races::a_timer_is_never_both_canceled_and_claimed;
    an_update_that_ignores_the_revision: UpdateWhateverTheRevision by change::an_update_of_a_stale_revision_is_told_to_read_again;
    a_cancel_that_ignores_the_revision: CancelWhateverTheRevision by revision::a_cancel_of_another_revision_changes_nothing;
    a_cancel_that_others_overtake: CancelWhateverTheRevision by revision::of_many_changes_of_one_revision_one_counts;
    a_reopen_that_ignores_the_revision: ReopenWhateverTheRevision by revision::a_reopen_of_another_revision_changes_nothing;
    a_reopen_that_many_make: ReopenWhateverTheRevision by revision::of_many_reopens_of_one_revision_one_counts;
    a_bulk_change_of_what_has_ended: BulkWhateverTheStatusRead by change_all::a_timer_that_ended_since_it_was_read_is_left_alone;
    an_update_that_forgets_the_retry: UpdateForgetsTheRetry by change::an_update_that_keeps_the_time_keeps_the_next_attempt;
    a_claim_that_ignores_the_shard_lease: ClaimWithoutShardLease by claim::without_the_current_shard_lease_nothing_is_claimed;
    a_claim_under_a_lost_shard_lease: ClaimWithoutShardLease by claim::a_lost_shard_is_claimed_only_by_its_new_owner;
    a_claim_that_ignores_the_time: ClaimWhateverTheTime by change::a_moved_timer_can_no_longer_be_claimed_at_its_old_time;
    a_claim_that_cannot_be_repeated: RepeatedClaimIsEmpty by claim::a_claim_that_is_repeated_gives_the_same_and_counts_nothing_twice;
    a_claim_that_gives_timers_to_every_token: ClaimTwice by claim::a_claimed_timer_is_not_claimed_by_another_token;
    a_claim_that_answers_each_entry: ClaimAnswersEachEntry by claim::a_timer_that_is_named_many_times_is_claimed_once;
    a_claim_that_many_get: ClaimTwice by races::exactly_one_of_many_claimers_gets_each_timer;
    a_settle_that_ignores_the_token: SettleWithAnyToken by settle::a_settlement_with_another_token_counts_for_nothing;
    a_late_settle_that_counts: SettleWithAnyToken by settle::a_late_settlement_does_not_touch_the_next_claim;
    a_settle_that_counts_what_was_not_sent: SettleCountsWhatWasNotSent by settle::a_timer_that_is_given_up_without_a_call_counts_only_the_attempts_before;
    a_settle_that_ignores_the_shard_lease: SettleWithoutShardLease by handover::a_settlement_under_any_other_shard_lease_counts_for_nothing;
    claimed_timers_among_the_due: DueIncludesClaimed by due::only_pending_timers_are_due;
    a_due_that_leaves_out_its_end: DueUntilIsExclusive by due::until_is_inclusive;
    a_limit_for_all_shards_together: DueLimitIsForAll by due::several_shards_are_read_in_one_call_each_to_its_own_limit;
    living_claims_among_the_expired: ExpiredIncludesLiving by recovery::a_claim_of_a_dead_owner_is_found_at_once;
    a_list_cursor_without_the_id: ListCursorIsTimeOnly by list::pages_by_cursor_neither_repeat_nor_miss_a_timer;
    a_list_that_never_ends: ListAlwaysGoesOn by list::pages_by_cursor_neither_repeat_nor_miss_a_timer;
    a_count_that_folds_case: CountFoldsCase by texts::namespaces_stay_distinct_and_are_filtered_exactly;
    answers_in_the_order_of_ids: CreateAnswersById by create::answers_come_in_the_order_of_the_batch;
    a_batch_that_falls_with_one: CreateStopsAtAConflict by create::a_refused_timer_does_not_hinder_its_neighbours;
    json_that_is_tidied_up: JsonIsTidied by texts::metadata_comes_back_to_the_byte;
    times_cut_to_milliseconds: TimesAreMilliseconds by texts::times_come_back_to_the_microsecond;
    a_purge_that_takes_all: PurgeWithoutLimit by purge::the_oldest_go_first_and_no_more_than_the_limit;
    leases_that_never_end: LeasesNeverEnd by ownership::a_shard_can_be_taken_over_once_its_owners_lease_ran_out;
    a_lease_by_the_nodes_own_clock: HeartbeatByOwnClock by members::a_lease_runs_by_the_databases_clock_whatever_the_nodes_own_says;
    a_heartbeat_that_tells_of_the_dead: HeartbeatTellsOfTheDead by members::a_heartbeat_tells_who_lives;
    a_heartbeat_that_keeps_what_is_lost: HeldWhatWasTaken by members::a_node_that_lives_again_has_lost_what_was_taken;
    an_acquisition_from_the_living: AcquireFromTheLiving by ownership::a_shard_of_the_living_is_refused;
    an_acquisition_by_the_dead: AcquireByTheDead by ownership::a_dead_node_acquires_nothing;
    epochs_that_do_not_rise: EpochNotRising by ownership::a_released_shard_can_be_taken_at_once_and_epochs_rise;
    a_crowd_that_shares: AcquireFromTheLiving by ownership::of_many_nodes_each_shard_gets_one;
    a_leave_that_keeps_the_shards: LeaveKeepsTheShards by members::a_node_that_leaves_is_no_member_and_holds_nothing;
    a_hand_over_that_voids_claims: SettleOnlyUnderTheCurrentShardLease by handover::a_living_former_owner_settles_what_it_claimed;
    claims_of_the_living_among_the_expired: ExpiredIgnoresLivingOwner by handover::what_a_living_former_owner_claimed_is_not_expired;
    expired_claims_without_the_shard_lease: ExpiredWhateverTheShardLease by handover::only_the_current_shard_lease_finds_expired_claims;
    a_claim_lost_in_a_hand_over: RepeatedClaimNeedsTheShard by handover::a_claim_that_is_repeated_after_the_hand_over_gives_the_same;
    nudges_that_are_lost: NudgesAreLost by nudges::nudges_of_one_process_reach_the_other_processes;
    nudges_that_come_back: NudgesComeBack by nudges::a_process_does_not_hear_itself;
    a_prefix_that_is_a_pattern: PrefixIsAPattern by bulk::a_key_prefix_is_taken_literally;
    a_list_without_the_prefix: ListForgetsThePrefix by list::a_key_prefix_narrows_lists_and_counts;
    a_count_without_the_prefix: CountForgetsThePrefix by list::a_key_prefix_narrows_lists_and_counts;
    a_reopen_that_moves_the_due_time: ReopenMovesTheDueTime by bulk::a_failed_timer_can_be_tried_again;
    attempts_without_a_limit: AttemptsAreKeptForEver by attempts::only_the_last_attempts_are_kept;
    revoked_keys_that_come_back: RevokedKeysComeBack by access::a_revoked_key_stays_revoked;
    a_release_by_any_node: ReleaseByAnybody by ownership::releasing_what_is_not_ones_own_is_passed_over;
}
