-- Writes those new timers whose id is free, and answers with them. IS TRUE keeps the subquery a
-- hash table; as a join it could be planned as a loop in a loop.
-- As in insert.sql, the journal has late creations.
-- $1 to $13 columns of definitions; $14 destinations, $15 shards, $16 options, $17 groups. A column
-- in which no timer has anything is NULL
WITH inserted AS (
    INSERT INTO definition (
        id, namespace, key, asked, execute_at, callback_type, callback_config, metadata, correlation_id,
        retry_policy, delivery, fingerprint, created_at, updated_at, revision, options,
        group_name, is_late
    )
    SELECT
        n.id, n.namespace, n.key, n.asked, n.execute_at, n.callback_type, n.callback_config, n.metadata,
        n.correlation_id, n.retry_policy, n.delivery, n.fingerprint, n.created_at, n.created_at, 1, n.options,
        n.group_name,
        CASE WHEN abs(n.created_at - (
            SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE pg_current_xact_id() IS NOT NULL
        )) > 2000000 THEN true END
    FROM (
        SELECT
            unnest($1::uuid[]) AS id, unnest($2::text[]) AS namespace, unnest($3::text[]) AS key,
            unnest($4::bigint[]) AS asked, unnest($5::bigint[]) AS execute_at,
            unnest($6::text[]) AS callback_type, unnest($7::text[]) AS callback_config, unnest($8::text[]) AS metadata,
            unnest($9::text[]) AS correlation_id, unnest($10::text[]) AS retry_policy, unnest($11::text[]) AS delivery,
            unnest($12::bytea[]) AS fingerprint, unnest($13::bigint[]) AS created_at,
            unnest($16::text[]) AS options, unnest($17::text[]) AS group_name
    ) n
    ON CONFLICT (id) DO NOTHING
    RETURNING id
)
INSERT INTO due (shard, id, at, attempt, destination)
SELECT w.shard, w.id, w.at, 0, w.destination
FROM (
    SELECT
        unnest($1::uuid[]) AS id, unnest($5::bigint[]) AS at,
        unnest($14::bigint[]) AS destination, unnest($15::smallint[]) AS shard
) w
WHERE (w.id IN (SELECT id FROM inserted)) IS TRUE
RETURNING id
