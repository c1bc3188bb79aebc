-- Tries timers that have ended, and are locked, again. Their due times stay; only the next attempts
-- are placed anew.
-- $1 ids, $2 shards, $3 destinations, $4 when each is due, $5 now
WITH gone AS (
    DELETE FROM outcome o
    USING unnest($1::uuid[]) AS w (id)
    WHERE o.id = ANY (ARRAY[w.id])
), placed AS (
    INSERT INTO due (shard, id, at, attempt, destination)
    SELECT w.shard, w.id, w.at, 0, w.destination
    FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bigint[]) AS w (id, shard, destination, at)
)
UPDATE definition f
SET due_at = w.at, updated_at = $5::bigint, revision = f.revision + 1
FROM unnest($1::uuid[], $4::bigint[]) AS w (id, at)
WHERE f.id = ANY (ARRAY[w.id])
