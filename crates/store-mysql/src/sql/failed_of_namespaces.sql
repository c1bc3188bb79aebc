-- How many timers have failed, by namespace, among so many of them.
-- limit
SELECT f.namespace, COUNT(*) AS failed
FROM (SELECT id FROM outcome WHERE status = 'failed' LIMIT ?) o
JOIN definition f ON f.id = o.id
GROUP BY f.namespace
