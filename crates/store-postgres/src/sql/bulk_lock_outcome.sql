-- Locks the rows in `outcome` of timers, in the order of their ids.
-- $1 ids
WITH wanted AS MATERIALIZED (
    SELECT w.id FROM unnest($1::uuid[]) AS w (id) ORDER BY w.id
)
SELECT o.id
FROM wanted w
JOIN outcome o ON o.id = ANY (ARRAY[w.id])
FOR UPDATE OF o
