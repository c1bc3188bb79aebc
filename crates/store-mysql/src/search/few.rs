//! The ids that a small index knows.

use domain::Status;
use store_sql::{CLAIMED_AHEAD_MICROS, EXECUTING_LOOKED_AT_MAX, FEW, Few};

use super::{
    conditions::{in_namespaces, within},
    parameters::Parameters,
};

/// Ids from a small index with whether they may match, at most one more than a few of each part.
pub fn ids_of(few: &Few, shards: u16, parameters: &mut Parameters) -> String {
    let most = FEW + 1;
    match few {
        Few::Ids(ids) => {
            let ids: Vec<_> = ids.iter().map(|id| parameters.id(*id)).collect();
            format!("SELECT f.id, TRUE AS fits FROM definition f WHERE f.id IN ({})", ids.join(", "))
        }
        Few::Statuses(statuses) => {
            let mut statuses = statuses.clone();
            statuses.sort_unstable();
            statuses.dedup();
            let of_each: Vec<_> = statuses.into_iter().map(|status| ids_in(status, shards, most)).collect();
            format!("SELECT x.id, x.fits FROM ({}) x", of_each.join(" UNION ALL "))
        }
        Few::Group(namespaces, group) => {
            let (names, group) = (in_namespaces(namespaces, parameters), parameters.bytes(group.as_str()));
            format!("SELECT f.id, TRUE AS fits FROM definition f WHERE f.group_name = {group} AND {names}")
        }
        Few::Namespaces(namespaces) => {
            let names = in_namespaces(namespaces, parameters);
            format!("SELECT f.id, TRUE AS fits FROM definition f FORCE INDEX (definition_namespace) WHERE {names}")
        }
        Few::Due(period) => {
            let due = within("f.execute_at", *period, parameters);
            format!("SELECT f.id, TRUE AS fits FROM definition f FORCE INDEX (definition_execute) WHERE TRUE{due}")
        }
        Few::Created(period) => {
            let created = within("f.created_at", *period, parameters);
            format!("SELECT f.id, TRUE AS fits FROM definition f FORCE INDEX (definition_created) WHERE TRUE{created}")
        }
    }
}

fn ids_in(status: Status, shards: u16, most: u64) -> String {
    match status {
        Status::Pending => format!("(SELECT d.id, d.claim IS NULL AS fits FROM due d ORDER BY d.shard, d.at, d.id LIMIT {most})"),
        // No index tells what is claimed: it would make every claim dearer. Where too many had to be looked at, all of them are shown,
        // which are more than a few.
        Status::Executing => {
            let shards: Vec<_> = (0..shards).map(|shard| shard.to_string()).collect();
            format!(
                "(SELECT t.id, TRUE AS fits
                  FROM (
                    SELECT d.id, d.claim, COUNT(*) OVER () AS looked_at
                    FROM (
                        SELECT d.id, d.claim FROM due d FORCE INDEX (PRIMARY)
                        WHERE d.shard IN ({})
                            AND d.at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + {CLAIMED_AHEAD_MICROS}
                        LIMIT {}
                    ) d
                  ) t
                  WHERE t.claim IS NOT NULL OR t.looked_at > {EXECUTING_LOOKED_AT_MAX} LIMIT {most})",
                shards.join(", "),
                EXECUTING_LOOKED_AT_MAX + 1
            )
        }
        Status::Paused => format!("(SELECT p.id, TRUE AS fits FROM paused p LIMIT {most})"),
        ended => format!("(SELECT o.id, TRUE AS fits FROM outcome o WHERE o.status = '{ended}' LIMIT {most})"),
    }
}
