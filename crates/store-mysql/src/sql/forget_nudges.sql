-- Forgets what was told long ago.
-- up to which number
DELETE FROM nudge
WHERE n <= ?
