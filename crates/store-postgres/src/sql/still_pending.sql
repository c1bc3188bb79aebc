-- Which of the timers are pending or paused, in one snapshot.
-- $1 ids, $2 shards
SELECT w.id
FROM unnest($1::uuid[], $2::smallint[]) AS w (id, shard)
JOIN definition f ON f.id = ANY (ARRAY[w.id])
-- OFFSET 0 as in read.sql.
LEFT JOIN LATERAL (
    SELECT d.id
    FROM due d
    WHERE d.shard = w.shard AND d.at = coalesce(f.due_at, f.execute_at) AND d.id = w.id AND d.claim IS NULL
    OFFSET 0
) d ON TRUE
LEFT JOIN paused p ON p.id = ANY (ARRAY[w.id])
WHERE d.id IS NOT NULL OR p.id IS NOT NULL
