-- Locks the rows in `due` of timers that are pending, in the order in which claims and settlements
-- take them, so that no two sessions wait for each other in a circle. A row that moved while it was
-- waited for no longer fits what was looked up, and is not found.
-- $1 ids, $2 shards
SELECT d.id
FROM (
    SELECT w.id, w.shard, coalesce(f.due_at, f.execute_at) AS at
    FROM unnest($1::uuid[], $2::smallint[]) AS w (id, shard)
    JOIN definition f ON f.id = ANY (ARRAY[w.id])
) s
JOIN due d ON d.shard = ANY (ARRAY[s.shard]) AND d.at = s.at AND d.id = s.id
WHERE d.claim IS NULL
ORDER BY d.shard, d.at, d.id
FOR UPDATE OF d
