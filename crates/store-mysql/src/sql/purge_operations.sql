-- Removes operations that ended long ago.
-- before, limit
DELETE FROM operation
WHERE finished_at < ?
ORDER BY id
LIMIT ?
