-- How many timers a namespace has.
-- ?1 namespace
SELECT coalesce(sum(timers), 0) AS timers
FROM tally
WHERE namespace = ?1
