-- Removes old entries of the journal.
-- before, limit
DELETE FROM journal
WHERE at < ?
ORDER BY at, n
LIMIT ?
