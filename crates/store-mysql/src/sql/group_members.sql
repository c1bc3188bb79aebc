-- Timers of a group that have not ended, in the order of their ids.
-- group, namespace, the id before, how many at most
SELECT f.id
FROM definition f
WHERE f.group_name = ? AND f.namespace = ? AND f.id > ?
    AND NOT EXISTS (SELECT 1 FROM outcome o WHERE o.id = f.id)
ORDER BY f.id
LIMIT ?
