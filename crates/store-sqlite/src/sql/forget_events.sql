-- Removes old entries of the journal.
-- ?1 before, ?2 limit
DELETE FROM journal
WHERE rowid IN (SELECT rowid FROM journal WHERE at < ?1 ORDER BY at LIMIT ?2)
