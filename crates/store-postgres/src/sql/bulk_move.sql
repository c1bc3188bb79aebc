-- Gives timers that are pending or paused, and locked, another due time than was asked for: attempts
-- start over. What was asked stays, so that a repeated request is still known.
-- $1 ids, $2 shards, $3 when their next attempts were due, $4 new due times, $5 now
WITH moved AS (
    UPDATE due d
    SET at = w.next_at, attempt = 0, last_error = NULL
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bigint[]) AS w (id, shard, at, next_at)
    WHERE d.shard = ANY (ARRAY[w.shard]) AND d.at = w.at AND d.id = w.id
), shifted AS (
    UPDATE paused p
    SET at = w.next_at, attempt = 0, last_error = NULL
    FROM unnest($1::uuid[], $4::bigint[]) AS w (id, next_at)
    WHERE p.id = ANY (ARRAY[w.id])
)
UPDATE definition f
SET execute_at = w.next_at, due_at = NULL, updated_at = $5::bigint, revision = f.revision + 1
FROM unnest($1::uuid[], $4::bigint[]) AS w (id, next_at)
WHERE f.id = ANY (ARRAY[w.id])
