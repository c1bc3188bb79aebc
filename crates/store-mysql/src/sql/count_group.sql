-- How many timers of a group there are, by their status. A timer that is neither due nor finished is
-- paused.
-- group, namespace, how many are counted at most
SELECT g.status, COUNT(*) AS timers
FROM (
    SELECT CASE
        WHEN o.id IS NOT NULL THEN o.status
        WHEN d.claim IS NOT NULL THEN 'executing'
        WHEN d.id IS NOT NULL THEN 'pending'
        ELSE 'paused'
    END AS status
    FROM definition f
    LEFT JOIN due d ON d.shard = f.shard AND d.at = COALESCE(f.due_at, f.execute_at) AND d.id = f.id
    LEFT JOIN outcome o ON o.id = f.id
    WHERE f.group_name = ? AND f.namespace = ?
    LIMIT ?
) g
GROUP BY g.status
