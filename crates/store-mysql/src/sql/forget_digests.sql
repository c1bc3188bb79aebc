-- Removes what was written about earlier minutes.
-- minute
DELETE FROM digest
WHERE minute < ?
