-- Forgets the earlier attempts of a timer.
-- ?1 id, ?2 the last seq to be forgotten
DELETE FROM attempt
WHERE id = ?1 AND seq <= ?2
