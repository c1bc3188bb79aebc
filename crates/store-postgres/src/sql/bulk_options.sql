-- What the options of timers say, of those that have any.
-- $1 ids
SELECT f.id, f.options
FROM unnest($1::uuid[]) AS w (id)
JOIN definition f ON f.id = ANY (ARRAY[w.id])
WHERE f.options IS NOT NULL
