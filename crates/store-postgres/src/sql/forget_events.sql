-- Removes old entries of the journal. What another session removes at this moment is passed over.
-- $1 before, $2 limit
WITH old AS MATERIALIZED (
    SELECT at, n FROM journal WHERE at < $1::bigint ORDER BY at, n LIMIT $2::bigint FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM journal j USING old WHERE j.at = ANY (ARRAY[old.at]) AND j.n = old.n RETURNING j.n
)
SELECT count(*) FROM gone
