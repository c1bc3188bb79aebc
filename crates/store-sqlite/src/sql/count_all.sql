-- How many timers there are.
SELECT coalesce(sum(timers), 0) AS timers
FROM tally
