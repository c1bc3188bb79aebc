-- Removes what finished long ago. Locks each outcome first, as a revival does: one that is being
-- revived is passed over, one that is being purged is gone when the revival gets to it.
-- $1 before, $2 limit
WITH old AS MATERIALIZED (
    SELECT id FROM outcome WHERE finished_at < $1::bigint ORDER BY finished_at LIMIT $2::bigint FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM outcome o USING old WHERE o.id = ANY (ARRAY[old.id]) RETURNING o.id
), dropped AS (
    DELETE FROM definition f USING gone WHERE f.id = ANY (ARRAY[gone.id])
), forgotten AS (
    DELETE FROM attempt a USING gone WHERE a.id = ANY (ARRAY[gone.id])
)
SELECT count(*) FROM gone
