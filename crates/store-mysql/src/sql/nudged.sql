-- What other nodes have told since.
-- the last number, limit
SELECT n, sender, at, id, destination
FROM nudge
WHERE n > ?
ORDER BY n
LIMIT ?
