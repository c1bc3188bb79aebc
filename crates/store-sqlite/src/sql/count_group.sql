-- How many timers of a group there are, by their status. A timer that is neither due nor finished is
-- paused.
-- ?1 namespace, ?2 group, ?3 how many are counted at most
SELECT g.status, count(*) AS timers
FROM (
    SELECT CASE
        WHEN o.id IS NOT NULL THEN o.status
        WHEN u.claim IS NOT NULL THEN 'executing'
        WHEN u.id IS NOT NULL THEN 'pending'
        ELSE 'paused'
    END AS status
    FROM definition d
    LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
    LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id
    WHERE d.namespace = ?1 AND d.group_name = ?2
    LIMIT ?3
) g
GROUP BY g.status
