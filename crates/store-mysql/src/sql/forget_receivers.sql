-- Removes what was written earlier.
-- when
DELETE FROM receiver
WHERE written_at < ?
