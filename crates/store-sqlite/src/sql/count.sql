-- How many timers of a status a namespace has.
-- ?1 namespace, ?2 status
SELECT coalesce(sum(timers), 0) AS timers
FROM tally
WHERE namespace = ?1 AND status = ?2
