-- How many timers have failed, by namespace, among so many of them.
-- $1 limit
SELECT f.namespace, count(*) AS failed
FROM (SELECT id FROM outcome WHERE status = 'failed' LIMIT $1::bigint) o
CROSS JOIN LATERAL (SELECT namespace FROM definition WHERE id = o.id) f
GROUP BY f.namespace
