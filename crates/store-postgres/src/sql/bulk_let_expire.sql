-- Makes timers that are pending or paused, and locked, due at another time, with the reason for which
-- their claims let them expire. Their own due times and their attempts stay.
-- $1 ids, $2 shards, $3 when their next attempts were due, $4 when they are due, $5 reason, $6 now
WITH hastened AS (
    UPDATE due d
    SET at = $4::bigint, last_error = $5::text
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS w (id, shard, at)
    WHERE d.shard = ANY (ARRAY[w.shard]) AND d.at = w.at AND d.id = w.id
), gone AS (
    DELETE FROM paused p
    USING unnest($1::uuid[], $2::smallint[]) AS w (id, shard)
    WHERE p.id = ANY (ARRAY[w.id])
    RETURNING p.id, w.shard, p.attempt, p.destination
), placed AS (
    INSERT INTO due (shard, id, at, attempt, destination, last_error)
    SELECT shard, id, $4::bigint, attempt, destination, $5::text FROM gone
)
UPDATE definition f
SET due_at = nullif($4::bigint, f.execute_at), updated_at = $6::bigint, revision = f.revision + 1
FROM unnest($1::uuid[]) AS w (id)
WHERE f.id = ANY (ARRAY[w.id])
