-- Removes operations that ended long ago.
-- $1 before, $2 limit
DELETE FROM operation
WHERE id IN (SELECT id FROM operation WHERE finished_at < $1 ORDER BY id LIMIT $2)
