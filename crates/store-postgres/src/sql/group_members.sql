-- Timers of a group that have not ended, in the order of their ids.
-- $1 namespace, $2 group, $3 the id before, $4 how many at most
SELECT f.id
FROM definition f
WHERE f.namespace = $1 AND f.group_name = $2 AND f.id > $3
    AND NOT EXISTS (SELECT FROM outcome o WHERE o.id = f.id)
ORDER BY f.id
LIMIT $4
