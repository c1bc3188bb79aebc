-- How many timers have a status.
-- ?1 status
SELECT coalesce(sum(timers), 0) AS timers
FROM tally
WHERE status = ?1
