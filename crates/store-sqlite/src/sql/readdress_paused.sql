-- The next attempt of a paused timer stays when it was, and goes where the new callback says.
-- ?1 minute and ?2 id of the row, ?3 destination, ?4 namespace
UPDATE paused
SET destination = ?3, namespace = ?4
WHERE minute = ?1 AND id = ?2
