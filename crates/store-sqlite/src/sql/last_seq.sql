-- The number under which the last attempt of a timer was recorded, 0 if there is none.
-- ?1 id
SELECT coalesce(max(seq), 0) AS seq
FROM attempt
WHERE id = ?1
