-- Writes new timers, all of them or none: a taken id is a failure, for to look each up before would
-- cost a tenth. The ids come sorted: two batches that share some would otherwise wait for each
-- other. The server runs `placed` last, when a taken id has been noticed: the row in `due` may be
-- held by a session that changes it, and would be waited for.
--
-- Arrays are taken apart in the list of columns, here and wherever there are many: as a table of
-- its own, each of them would be written to memory and read again.
--
-- A creation is late if its time is more than two seconds away from the moment at which it is
-- written: then a trigger writes it to the journal, too. The clock is read once, and after the
-- transaction has got its number, by which readers of events wait for it.
-- $1 to $13 columns of definitions; $14 destinations, $15 shards, $16 options, $17 groups. A column
-- in which no timer has anything is NULL
WITH placed AS (
    INSERT INTO due (shard, id, at, attempt, destination)
    SELECT w.shard, w.id, w.at, 0, w.destination
    FROM (
        SELECT
            unnest($1::uuid[]) AS id, unnest($5::bigint[]) AS at,
            unnest($14::bigint[]) AS destination, unnest($15::smallint[]) AS shard
    ) w
)
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
