-- Takes a timer out of `paused`.
-- ?1 minute and ?2 id of the row
DELETE FROM paused
WHERE minute = ?1 AND id = ?2
