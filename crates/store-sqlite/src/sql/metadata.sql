-- The metadata of one timer.
-- ?1 id
SELECT metadata
FROM definition
WHERE id = ?1
