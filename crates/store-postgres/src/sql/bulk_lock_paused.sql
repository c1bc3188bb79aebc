-- Locks the rows in `paused` of timers, in the order of their ids.
-- $1 ids
WITH wanted AS MATERIALIZED (
    SELECT w.id FROM unnest($1::uuid[]) AS w (id) ORDER BY w.id
)
SELECT p.id
FROM wanted w
JOIN paused p ON p.id = ANY (ARRAY[w.id])
FOR UPDATE OF p
