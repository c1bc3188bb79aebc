-- Locks the rows in `due` of timers that are pending, in the order in which claims and settlements
-- take them, so that no two sessions wait for each other in a circle. A row that moved while it was
-- waited for no longer fits what was looked up, and is not found.
-- $1 ids, $2 shards
WITH wanted AS MATERIALIZED (
    SELECT w.shard, coalesce(f.due_at, f.execute_at) AS at, w.id
    FROM unnest($1::uuid[], $2::smallint[]) AS w (id, shard)
    JOIN definition f ON f.id = ANY (ARRAY[w.id])
    ORDER BY w.shard, at, w.id
)
SELECT d.id
FROM wanted w
JOIN due d ON d.shard = ANY (ARRAY[w.shard]) AND d.at = w.at AND d.id = w.id
WHERE d.claim IS NULL
FOR UPDATE OF d
