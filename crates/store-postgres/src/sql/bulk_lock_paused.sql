-- Locks the rows in `paused` of timers, in the order of their ids.
-- $1 ids
SELECT p.id
FROM unnest($1::uuid[]) AS w (id)
JOIN paused p ON p.id = ANY (ARRAY[w.id])
ORDER BY p.id
FOR UPDATE OF p
