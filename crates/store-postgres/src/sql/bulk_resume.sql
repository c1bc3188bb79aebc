-- Takes timers that are paused, and locked, out of the paused ones, and makes their next attempts
-- due.
-- $1 ids, $2 shards, $3 when their next attempts are due, $4 now
WITH gone AS (
    DELETE FROM paused p
    USING unnest($1::uuid[], $2::smallint[], $3::bigint[]) AS w (id, shard, at)
    WHERE p.id = ANY (ARRAY[w.id])
    RETURNING p.id, w.shard, w.at, p.attempt, p.destination, p.last_error
), placed AS (
    INSERT INTO due (shard, id, at, attempt, destination, last_error)
    SELECT shard, id, at, attempt, destination, last_error FROM gone
)
UPDATE definition f
SET due_at = nullif(w.at, f.execute_at), updated_at = $4::bigint, revision = f.revision + 1
FROM unnest($1::uuid[], $3::bigint[]) AS w (id, at)
WHERE f.id = ANY (ARRAY[w.id])
