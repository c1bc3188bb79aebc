/// Generates one test per behaviour. `$fixture` is evaluated for each of them.
#[macro_export]
macro_rules! suite {
    ($fixture:expr) => {
        $crate::behaviours! { tests $fixture }
    };
}

/// Hands the list of all behaviours to another macro of this crate.
#[doc(hidden)]
#[macro_export]
macro_rules! behaviours {
    ($macro:ident $($fixture:expr)?) => {
        $crate::$macro! { $($fixture)?;
            create {
                a_new_timer_is_pending_and_comes_back_as_it_was_written
                every_field_of_a_definition_comes_back
                a_chosen_id_is_the_same_timer_only_with_the_same_content
                a_chosen_id_is_known_again_after_an_update_only_with_the_new_content
                reject_gives_the_same_timer_back_and_refuses_another
                replace_overwrites_what_is_pending_and_revives_what_has_ended
                keep_moves_what_is_pending_and_nothing_else
                postpone_moves_what_is_pending_and_revives_what_has_ended
                earliest_moves_what_is_pending_to_an_earlier_time_only
                latest_moves_what_is_pending_to_a_later_time_only
                a_timer_takes_no_time_at_which_it_has_expired
                a_timer_is_postponed_up_to_its_limit
                blanks_between_json_tokens_do_not_make_another_timer
                the_same_delay_asked_for_later_is_the_same_timer
                a_repeated_request_is_known_again_after_an_update_only_with_the_new_content
                an_overwritten_or_moved_timer_starts_its_attempts_over
                a_revived_timer_can_be_delivered_again
                a_refused_timer_does_not_hinder_its_neighbours
                answers_come_in_the_order_of_the_batch
                ids_that_repeat_within_a_batch_count_in_its_order
                a_thousand_timers_are_registered_at_once
            }
            read {
                an_unknown_id_is_none
                a_timer_in_any_status_can_be_read
                a_store_says_which_promises_it_does_not_keep
                a_live_store_answers_a_ping
                a_probe_is_taken_and_leaves_nothing_behind
                empty_batches_are_no_trouble
            }
            list {
                an_empty_store_lists_and_counts_nothing
                a_summary_shows_what_get_shows
                every_filter_lists_and_counts_what_matches
                a_key_prefix_narrows_lists_and_counts
                every_order_is_by_time_then_by_id
                pages_by_offset_follow_one_another
                pages_by_cursor_neither_repeat_nor_miss_a_timer
                cursors_work_together_with_filters
                an_offset_counts_from_the_cursor
                timers_that_come_and_go_do_not_shift_pages_by_cursor
                a_cursor_may_lie_between_timers
                a_moved_timer_moves_in_the_list
                a_timer_that_is_tried_again_keeps_its_place_in_the_list
                counts_follow_a_timer_through_its_life
            }
            groups {
                a_group_is_counted_by_status_inside_its_namespace
                the_open_members_of_a_group_come_in_the_order_of_their_ids
                a_timer_changes_its_group_with_its_content_and_not_with_its_time
            }
            change {
                an_update_replaces_content_and_time
                every_update_raises_the_revision
                an_update_of_a_stale_revision_is_told_to_read_again
                an_update_meets_what_is_not_pending
                what_is_unknown_can_neither_be_updated_nor_canceled
                a_moved_timer_can_no_longer_be_claimed_at_its_old_time
                a_claim_after_an_update_carries_the_new_content
                an_update_to_another_time_starts_the_attempts_over
                an_update_that_keeps_the_time_keeps_the_next_attempt
                a_retry_is_not_waited_for_beyond_a_new_expiry
                an_update_made_before_a_retry_keeps_that_retry
                an_update_made_before_the_timer_was_due_again_is_told_to_read_again
                an_update_made_in_a_former_life_is_told_to_read_again
                a_new_life_begins_only_after_the_end_and_as_it_was_read
                a_canceled_timer_is_never_due_and_never_claimed
                a_cancel_meets_what_is_not_pending
                a_canceled_timer_keeps_the_record_of_its_attempts
                a_timer_that_failed_once_can_still_be_changed_and_canceled
            }
            revision {
                a_cancel_of_another_revision_changes_nothing
                a_reopen_of_another_revision_changes_nothing
                the_status_is_decided_before_the_revision
                of_many_changes_of_one_revision_one_counts
                of_many_reopens_of_one_revision_one_counts
                a_cancel_of_one_revision_is_before_the_claim_or_refused
            }
            pause {
                a_paused_timer_is_never_due_and_never_claimed
                a_resumed_timer_goes_on_where_it_was
                a_timer_that_was_due_meanwhile_fires_when_it_is_resumed_or_expires
                what_waits_for_a_retry_goes_on_waiting_when_it_is_resumed
                only_what_is_pending_is_paused_and_only_what_is_paused_is_resumed
                a_pause_and_its_end_count_only_for_the_expected_revision
                a_paused_timer_can_be_changed_and_stays_paused
                a_paused_timer_can_be_canceled_and_keeps_the_record_of_its_attempts
                notes_come_back_as_written
                paused_timers_are_listed_and_counted
            }
            due {
                nothing_is_due_in_an_empty_store
                due_entries_come_in_the_order_of_time_then_id
                due_pages_by_cursor_neither_repeat_nor_miss_an_entry
                several_shards_are_read_in_one_call_each_to_its_own_limit
                until_is_inclusive
                only_pending_timers_are_due
                a_cursor_goes_by_time_then_by_id
                what_moves_behind_the_cursor_is_read_once
                a_retry_is_due_at_its_own_time
                due_entries_carry_the_destination
                far_apart_times_are_read_together
            }
            claim {
                a_claimed_timer_is_executing_and_comes_back_whole
                only_what_is_pending_and_unmoved_is_claimed
                a_claimed_timer_is_not_claimed_by_another_token
                a_claim_that_is_repeated_gives_the_same_and_counts_nothing_twice
                a_timer_that_is_named_many_times_is_claimed_once
                without_the_current_shard_lease_nothing_is_claimed
                only_timers_of_shards_that_are_held_are_claimed
                a_lost_shard_is_claimed_only_by_its_new_owner
                a_shard_lease_that_ran_out_unnoticed_still_claims_and_settles
                attempts_count_up_from_claim_to_claim
                a_retry_is_claimed_at_its_own_time_only
                a_thousand_timers_are_claimed_at_once
            }
            settle {
                a_completed_timer_has_ended_well
                a_failed_timer_keeps_its_error
                a_timer_that_is_given_up_without_a_call_counts_only_the_attempts_before
                an_expired_timer_counts_the_attempts_that_were_started
                a_retried_timer_is_pending_again_for_the_same_due_time
                a_retry_counts_as_many_attempts_as_it_says
                a_timer_that_is_due_again_starts_over
                a_success_clears_the_error_of_earlier_attempts
                a_settlement_with_another_token_counts_for_nothing
                a_settlement_without_the_current_shard_lease_counts_for_nothing
                what_is_not_claimed_cannot_be_settled
                settling_twice_is_harmless
                a_late_settlement_does_not_touch_the_next_claim
                a_batch_of_settlements_is_answered_one_by_one_in_its_order
                a_thousand_timers_are_settled_at_once
            }
            recovery {
                a_claim_whose_lease_ran_out_is_found
                a_lease_counts_from_the_claim
                a_claim_has_run_out_at_the_end_of_its_lease
                a_claim_of_a_dead_owner_is_found_at_once
                a_claim_of_the_new_owner_is_not_taken_for_an_old_one
                only_claims_of_the_named_shards_are_found
                no_more_expired_claims_are_given_than_asked_for
                looking_at_expired_claims_changes_nothing
                an_expired_claim_is_settled_with_the_token_it_carries
                a_late_owner_that_is_still_the_owner_may_settle
                a_late_owner_and_a_recovery_do_not_both_count
            }
            handover {
                what_a_living_former_owner_claimed_is_not_expired
                a_living_former_owner_settles_what_it_claimed
                nothing_new_is_claimed_under_an_earlier_epoch
                a_claim_that_is_repeated_after_the_hand_over_gives_the_same
                what_a_dead_former_owner_claimed_is_recovered_and_its_late_word_does_not_count
                a_dead_former_owner_may_settle_until_its_claim_is_recovered
                a_former_owner_that_lives_again_has_its_claims_again
                a_claim_runs_out_although_its_maker_lives
                a_settlement_under_any_other_shard_lease_counts_for_nothing
                only_the_current_shard_lease_finds_expired_claims
                the_claims_of_a_living_former_owner_do_not_hide_those_of_a_dead_one
            }
            members {
                a_heartbeat_tells_who_lives
                a_node_lives_until_its_lease_runs_out
                a_lease_ends_to_the_microsecond
                a_lease_runs_by_the_databases_clock_whatever_the_nodes_own_says
                members_come_back_as_they_describe_themselves
                a_member_may_say_something_else_each_time
                a_heartbeat_tells_what_the_node_holds
                a_node_that_lives_again_has_the_shards_that_were_not_taken
                a_node_that_lives_again_has_lost_what_was_taken
                a_node_that_leaves_is_no_member_and_holds_nothing
                claims_of_a_node_that_left_are_recovered_by_other_nodes
                the_cluster_shows_who_holds_what
                the_cluster_shows_what_is_overdue
            }
            ownership {
                there_are_shards
                shards_that_never_had_an_owner_can_be_acquired
                only_the_shards_that_are_asked_for_are_acquired
                a_shard_that_does_not_exist_is_passed_over
                a_shard_of_the_living_is_refused
                acquiring_what_one_holds_gives_the_epoch_it_has
                a_released_shard_can_be_taken_at_once_and_epochs_rise
                a_released_shard_is_not_held_any_more
                a_released_shard_is_its_last_owners_until_it_is_taken
                a_shard_can_be_taken_at_the_end_of_its_owners_lease
                a_shard_can_be_taken_over_once_its_owners_lease_ran_out
                a_dead_node_acquires_nothing
                releasing_what_is_not_ones_own_is_passed_over
                of_many_nodes_each_shard_gets_one
            }
            nudges {
                nudges_of_one_process_reach_the_other_processes
                many_timers_can_be_told_of_at_once
                a_process_does_not_hear_itself
            }
            attempts {
                an_attempt_is_remembered_with_its_settlement
                a_settlement_that_does_not_count_is_not_remembered
                only_the_last_attempts_are_kept
                attempts_outlive_a_life_and_go_with_the_timer
            }
            events {
                a_life_in_time_is_recorded_by_its_own_rows
                what_is_written_late_is_an_event_of_its_moment
                every_raised_revision_is_an_event
                what_is_changed_with_many_is_an_event_as_alone
                a_refused_change_is_no_event
                a_new_life_keeps_the_creation_and_the_end_of_the_former_one
                recorded_attempts_are_events
                pages_of_events_neither_repeat_nor_miss_one
                many_events_of_one_moment_come_together
                an_event_that_is_recorded_later_lies_behind_the_watermark
                a_reader_behind_the_watermark_misses_nothing
                timers_of_events_come_as_far_as_they_can_be_read
                old_entries_of_the_journal_are_forgotten
            }
            bulk {
                a_key_prefix_is_taken_literally
                every_condition_of_a_filter_must_hold
                of_many_those_that_are_pending_or_paused_are_canceled
                a_thousand_timers_are_canceled_at_once
                a_reader_beside_a_bulk_cancel_sees_all_of_it_or_nothing
                a_failed_timer_can_be_tried_again
                only_what_has_failed_is_tried_again
            }
            stats {
                pending_timers_are_counted_by_the_minute_in_which_they_are_due
                only_pending_timers_count_as_due_and_at_their_next_attempt
                pending_timers_are_counted_by_namespace
                a_budget_that_is_used_up_leaves_an_answer_that_says_so
                digests_come_back_by_namespace_and_minute
                reports_about_receivers_come_back_the_last_written_first
                what_was_written_long_ago_is_removed
                namespaces_are_listed_with_what_they_have
            }
            change_all {
                each_action_changes_what_it_concerns_and_nothing_else
                an_end_that_is_told_is_left_to_the_claim
                a_change_since_it_was_read_wins
                a_timer_that_ended_since_it_was_read_is_left_alone
                what_waits_for_a_retry_is_changed_as_well
                a_thousand_timers_are_changed_at_once
                a_bulk_change_that_meets_a_claim_is_before_or_after_it
                a_bulk_change_that_meets_single_changes_counts_once_for_each_timer
            }
            operations {
                operations_come_back_as_they_were_kept_the_latest_first
                a_key_runs_no_more_operations_than_it_may
                an_operation_belongs_to_one_node_until_its_lease_runs_out
                the_operation_that_has_waited_longest_is_taken_first
                an_operation_that_cannot_be_read_holds_up_no_other
                progress_is_written_with_the_changes_and_only_by_the_owner
                a_timer_whose_options_cannot_be_read_is_an_error_of_its_operation
                operations_that_ended_are_removed_and_no_others
            }
            search {
                every_condition_finds_what_matches_in_every_order
                every_condition_counts_what_matches
                a_page_says_how_many_match_or_leaves_that_to_another_search
                a_search_without_time_goes_on_and_finds_everything_once
                a_search_says_how_many_timers_it_looked_at
                timers_that_stay_are_shown_once_while_others_come_and_go
            }
            access {
                keys_come_back_as_they_were_kept_the_oldest_first
                a_key_that_is_there_is_not_kept_twice
                a_revoked_key_stays_revoked
            }
            purge {
                what_ended_before_is_removed_and_nothing_else
                every_way_to_end_is_purged_and_no_other_status
                the_oldest_go_first_and_no_more_than_the_limit
                a_purged_key_is_free_again
                a_revived_timer_is_not_purged_for_its_former_life
                purged_timers_leave_no_trace_in_lists
            }
            races {
                exactly_one_of_many_claimers_gets_each_timer
                one_claim_sent_many_times_at_once_counts_once
                a_timer_is_never_both_canceled_and_claimed
                cancels_of_many_timers_at_once_are_answered_each_by_itself
                a_timer_is_never_both_paused_and_claimed
                pausing_and_resuming_at_once_leaves_one_timer
                a_claim_that_meets_an_update_is_before_or_after_it
                of_many_updates_of_one_revision_one_counts
                of_many_creates_of_one_key_one_creates
                replacing_batches_in_opposite_orders_do_not_hinder_each_other
                of_many_settlements_of_one_claim_one_counts
                what_the_old_owner_claims_during_a_hand_over_is_its_own
                what_the_old_owner_claims_during_a_take_over_is_found
                a_call_that_is_abandoned_leaves_the_store_whole
            }
            texts {
                keys_stay_distinct_and_come_back_as_written
                namespaces_stay_distinct_and_are_filtered_exactly
                correlation_ids_come_back_as_written
                errors_come_back_as_written
                payloads_come_back_to_the_byte
                callbacks_come_back_with_and_without_what_has_its_default
                metadata_comes_back_to_the_byte
                a_null_payload_is_not_the_same_as_none
                the_largest_payload_and_metadata_come_back
                times_come_back_to_the_microsecond
                what_was_asked_comes_back_as_asked
            }
            unreadable {
                a_spoiled_timer_is_claimed_as_unreadable_and_can_be_settled
                a_spoiled_timer_is_found_among_the_expired_claims
                a_spoiled_timer_is_corrupt_to_get_and_still_in_lists
                a_timer_that_no_list_can_show_leaves_its_place
                an_outcome_that_should_not_be_there_holds_up_no_settlement
                a_settlement_that_the_database_refuses_is_corrupt_and_leaves_its_neighbours_alone
            }
            opening {
                what_was_acknowledged_is_there_after_closing_and_opening_again
                opening_twice_is_harmless_and_shows_the_same_data
                many_may_open_a_new_database_at_once
                what_one_handle_acknowledged_the_other_claims
            }
        }
    };
}

/// One `#[test]` for each name of the list.
#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($fixture:expr; $($module:ident { $($behaviour:ident)* })*) => {
        $(mod $module {
            use super::*;
            $(
                #[test]
                fn $behaviour() {
                    $crate::run(async { $fixture }, $crate::compiled::$module::$behaviour);
                }
            )*
        })*
    };
}

/// One function for each name of the list, which runs the behaviour on any fixture.
#[doc(hidden)]
#[macro_export]
macro_rules! on_any_fixture {
    (; $($module:ident { $($behaviour:ident)* })*) => {
        $(pub mod $module {
            $(
                pub fn $behaviour(fixture: $crate::AnyFixture) -> $crate::Running {
                    Box::pin($crate::$module::$behaviour(fixture))
                }
            )*
        })*
    };
}

#[cfg(test)]
mod tests {
    /// A behaviour that no test runs would pass for ever.
    #[test]
    fn every_behaviour_is_in_the_list() {
        let (suite, files) = (include_str!("suite.rs"), std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap());
        let (list, _) = suite.split_once("macro_rules! tests").unwrap();
        let listed: Vec<&str> = list.lines().map(str::trim).collect();
        let mut behaviours = 0;
        for file in files {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for line in text.lines().filter(|line| line.contains("(fixture: impl Fixture")) {
                let Some(signature) = line.strip_prefix("pub async fn ") else { continue };
                let name = signature.split('(').next().unwrap();
                assert!(listed.contains(&name), "{name} is not in the list of `suite!`");
                behaviours += 1;
            }
        }
        let names = listed.iter().filter(|line| !line.is_empty() && line.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()));
        assert_eq!(names.count(), behaviours);
    }
}
