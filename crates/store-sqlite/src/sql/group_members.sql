-- Timers of a group that have not ended, in the order of their ids.
-- ?1 namespace, ?2 group, ?3 the id before, ?4 how many at most
SELECT d.id
FROM definition d
WHERE d.namespace = ?1 AND d.group_name = ?2 AND d.id > ?3
    AND NOT EXISTS (SELECT 1 FROM outcome o WHERE o.minute = d.execute_minute AND o.id = d.id)
ORDER BY d.id
LIMIT ?4
