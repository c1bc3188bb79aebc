-- Forgets a count that has come down to zero.
-- ?1 namespace, ?2 status
DELETE FROM tally
WHERE namespace = ?1 AND status = ?2 AND timers = 0
