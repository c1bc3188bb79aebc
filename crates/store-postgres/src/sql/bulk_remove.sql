-- Removes timers that have ended, and are locked.
-- $1 ids
WITH gone AS (
    DELETE FROM outcome o
    USING unnest($1::uuid[]) AS w (id)
    WHERE o.id = ANY (ARRAY[w.id])
), forgotten AS (
    DELETE FROM attempt a
    USING unnest($1::uuid[]) AS w (id)
    WHERE a.id = ANY (ARRAY[w.id])
)
DELETE FROM definition f
USING unnest($1::uuid[]) AS w (id)
WHERE f.id = ANY (ARRAY[w.id])
