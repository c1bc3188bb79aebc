-- Timers by their ids. One snapshot shows each timer in exactly one table: every move from one to
-- another is one commit.
-- OFFSET 0 keeps the planner from looking for a row of `due` before it knows the time of it, which
-- walks through the shard: as long as it believes that the table is empty, that costs it the same.
-- $1 ids, $2 shards
SELECT
    f.id, f.namespace, f.key, f.asked, f.execute_at, f.callback_config, f.metadata, f.correlation_id, f.retry_policy,
    f.delivery, f.revision, f.created_at, f.updated_at, f.options, f.group_name, f.fingerprint,
    d.id IS NOT NULL AS waits, d.claim IS NOT NULL AS claimed, coalesce(d.attempt, o.attempt, p.attempt) AS attempt,
    coalesce(d.last_error, o.last_error, p.last_error) AS last_error, o.status, o.executed_at, o.finished_at,
    p.paused_at, p.note AS pause_note
FROM unnest($1::uuid[], $2::smallint[]) AS w (id, shard)
JOIN definition f ON f.id = ANY (ARRAY[w.id])
LEFT JOIN LATERAL (
    SELECT d.id, d.claim, d.attempt, d.last_error
    FROM due d
    WHERE d.shard = w.shard AND d.at = coalesce(f.due_at, f.execute_at) AND d.id = w.id
    OFFSET 0
) d ON TRUE
LEFT JOIN outcome o ON o.id = ANY (ARRAY[w.id])
LEFT JOIN paused p ON p.id = ANY (ARRAY[w.id])
