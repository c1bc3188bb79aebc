//! The contract of every store, on a database of its own for each behaviour.

use std::io::Write;

use super::database::Database;

mod mariadb {
    use super::*;

    store_conformance::suite!(Database::on(throwaway::mariadb()));
}

/// What depends on how this server takes locks, compares texts and reads statements. The whole contract takes minutes on it, and is for
/// `make soak`: see `tests/every_server`.
mod mysql {
    use super::*;

    /// Without a MySQL the same is shown by MariaDB.
    fn database() -> Database {
        let instead = || {
            let _ = writeln!(std::io::stderr(), "no MySQL is installed for this checkout: MariaDB is used instead");
            throwaway::mariadb()
        };
        Database::on(throwaway::mysql().unwrap_or_else(instead))
    }

    store_conformance::tests! { database();
        create {
            every_field_of_a_definition_comes_back
            replace_overwrites_what_is_pending_and_revives_what_has_ended
            postpone_moves_what_is_pending_and_revives_what_has_ended
            ids_that_repeat_within_a_batch_count_in_its_order
            a_thousand_timers_are_registered_at_once
        }
        list {
            every_filter_lists_and_counts_what_matches
            every_order_is_by_time_then_by_id
            pages_by_cursor_neither_repeat_nor_miss_a_timer
            counts_follow_a_timer_through_its_life
        }
        groups {
            a_group_is_counted_by_status_inside_its_namespace
        }
        change {
            an_update_replaces_content_and_time
            a_canceled_timer_is_never_due_and_never_claimed
        }
        pause {
            a_resumed_timer_goes_on_where_it_was
        }
        due {
            due_pages_by_cursor_neither_repeat_nor_miss_an_entry
            several_shards_are_read_in_one_call_each_to_its_own_limit
        }
        claim {
            a_claimed_timer_is_executing_and_comes_back_whole
            a_claim_that_is_repeated_gives_the_same_and_counts_nothing_twice
            without_the_current_shard_lease_nothing_is_claimed
            a_lost_shard_is_claimed_only_by_its_new_owner
            a_thousand_timers_are_claimed_at_once
        }
        settle {
            a_retried_timer_is_pending_again_for_the_same_due_time
            a_settlement_without_the_current_shard_lease_counts_for_nothing
            a_batch_of_settlements_is_answered_one_by_one_in_its_order
            a_thousand_timers_are_settled_at_once
        }
        recovery {
            a_claim_of_a_dead_owner_is_found_at_once
        }
        handover {
            what_a_dead_former_owner_claimed_is_recovered_and_its_late_word_does_not_count
        }
        members {
            a_lease_ends_to_the_microsecond
            the_cluster_shows_what_is_overdue
        }
        ownership {
            of_many_nodes_each_shard_gets_one
        }
        nudges {
            many_timers_can_be_told_of_at_once
        }
        attempts {
            only_the_last_attempts_are_kept
        }
        events {
            pages_of_events_neither_repeat_nor_miss_one
            a_reader_behind_the_watermark_misses_nothing
        }
        bulk {
            a_key_prefix_is_taken_literally
            a_thousand_timers_are_canceled_at_once
            a_reader_beside_a_bulk_cancel_sees_all_of_it_or_nothing
        }
        stats {
            pending_timers_are_counted_by_namespace
            digests_come_back_by_namespace_and_minute
            namespaces_are_listed_with_what_they_have
        }
        change_all {
            each_action_changes_what_it_concerns_and_nothing_else
        }
        operations {
            an_operation_belongs_to_one_node_until_its_lease_runs_out
            the_operation_that_has_waited_longest_is_taken_first
            an_operation_that_cannot_be_read_holds_up_no_other
        }
        search {
            every_condition_finds_what_matches_in_every_order
            every_condition_counts_what_matches
            a_page_says_how_many_match_or_leaves_that_to_another_search
        }
        access {
            keys_come_back_as_they_were_kept_the_oldest_first
        }
        purge {
            every_way_to_end_is_purged_and_no_other_status
        }
        races {
            exactly_one_of_many_claimers_gets_each_timer
            a_timer_is_never_both_canceled_and_claimed
            of_many_creates_of_one_key_one_creates
            replacing_batches_in_opposite_orders_do_not_hinder_each_other
            what_the_old_owner_claims_during_a_take_over_is_found
        }
        texts {
            keys_stay_distinct_and_come_back_as_written
            namespaces_stay_distinct_and_are_filtered_exactly
            errors_come_back_as_written
            the_largest_payload_and_metadata_come_back
            times_come_back_to_the_microsecond
        }
        unreadable {
            an_outcome_that_should_not_be_there_holds_up_no_settlement
            a_settlement_that_the_database_refuses_is_corrupt_and_leaves_its_neighbours_alone
        }
        opening {
            many_may_open_a_new_database_at_once
        }
    }
}
