-- Up to where all has been told.
SELECT COALESCE(MAX(n), 0)
FROM nudge
