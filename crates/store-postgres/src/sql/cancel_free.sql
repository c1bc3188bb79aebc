-- Cancels many pending timers, each for a caller of its own, and reads them along. Passes over rows
-- that another session holds, so that no caller waits for what another one waits for, and rows that
-- were changed while the statement ran: locked is only the very version that the statement saw when
-- it began, as in claim_and_read.sql. So none comes with a definition that is older than the row.
-- $1 ids, $2 shards, $3 now
WITH seen AS MATERIALIZED (
    SELECT
        d.place, d.version, d.attempt, d.last_error, w.now, size.is_small, f.id, f.namespace, f.key, f.asked,
        f.execute_at, CASE WHEN size.is_small THEN f.callback_config END AS callback_config,
        CASE WHEN size.is_small THEN f.metadata END AS metadata, f.correlation_id, f.retry_policy, f.delivery,
        f.revision, f.created_at, CASE WHEN size.is_small THEN f.options END AS options, f.group_name
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS w (id, shard, now)
    JOIN definition f ON f.id = ANY (ARRAY[w.id])
    -- OFFSET 0 as in read.sql.
    CROSS JOIN LATERAL (
        SELECT d.ctid AS place, d.xmin AS version, d.attempt, d.last_error
        FROM due d
        WHERE d.shard = w.shard AND d.at = coalesce(f.due_at, f.execute_at) AND d.id = w.id AND d.claim IS NULL
        OFFSET 0
    ) d
    CROSS JOIN LATERAL (
        -- What is larger is canceled, but not read along: while it is sent, the rows stay locked.
        SELECT
            octet_length(f.callback_config) + coalesce(octet_length(f.metadata), 0)
            + coalesce(octet_length(f.options), 0) <= 4096 AS is_small
    ) size
), held AS MATERIALIZED (
    SELECT s.*
    FROM seen s
    JOIN due d ON d.ctid = s.place AND d.xmin = s.version
    FOR UPDATE OF d SKIP LOCKED
), gone AS (
    DELETE FROM due d USING held h WHERE d.ctid = h.place
), ended AS (
    INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
    SELECT id, 'canceled', attempt, last_error, NULL::bigint, now FROM held
)
SELECT
    id, attempt, last_error, now, is_small, namespace, key, asked, execute_at, callback_config, metadata, correlation_id,
    retry_policy, delivery, revision, created_at, options, group_name
FROM held
