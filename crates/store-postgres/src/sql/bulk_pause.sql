-- Takes timers that are pending, and locked, out of `due`, and puts them among the paused ones.
-- $1 ids, $2 shards, $3 when their next attempts are due, $4 now, $5 note
WITH gone AS (
    DELETE FROM due d
    USING unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS w (id, shard, at)
    WHERE d.shard = ANY (ARRAY[w.shard]) AND d.at = w.at AND d.id = w.id
    RETURNING d.id, d.at, d.attempt, d.destination, d.last_error
), placed AS (
    INSERT INTO paused (id, at, destination, paused_at, attempt, last_error, note)
    SELECT id, at, destination, $4::bigint, attempt, last_error, $5::text FROM gone
)
UPDATE definition f
SET updated_at = $4::bigint, revision = f.revision + 1
FROM unnest($1::uuid[]) AS w (id)
WHERE f.id = ANY (ARRAY[w.id])
