-- Locks the rows in `outcome` of timers, in the order of their ids.
-- $1 ids
SELECT o.id
FROM unnest($1::uuid[]) AS w (id)
JOIN outcome o ON o.id = ANY (ARRAY[w.id])
ORDER BY o.id
FOR UPDATE OF o
