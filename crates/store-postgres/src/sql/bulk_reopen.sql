-- Tries timers that have ended, and are locked, again. Their due times stay; only the next attempts
-- are placed anew.
-- $1 ids, $2 shards, $3 destinations, $4 now
WITH gone AS (
    DELETE FROM outcome o
    USING unnest($1::uuid[]) AS w (id)
    WHERE o.id = ANY (ARRAY[w.id])
), placed AS (
    INSERT INTO due (shard, id, at, attempt, destination)
    SELECT w.shard, w.id, $4::bigint, 0, w.destination
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS w (id, shard, destination)
)
UPDATE definition f
SET due_at = $4::bigint, updated_at = $4::bigint, revision = f.revision + 1
FROM unnest($1::uuid[]) AS w (id)
WHERE f.id = ANY (ARRAY[w.id])
