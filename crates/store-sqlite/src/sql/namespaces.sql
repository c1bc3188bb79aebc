-- What namespaces have, by name.
-- ?1 the namespaces as a JSON array: all of these, and no others; NULL for all that have timers, and
-- the default one; ?2 limit
SELECT
    n.namespace,
    coalesce(sum(t.timers) FILTER (WHERE t.status = 'pending'), 0) AS pending,
    coalesce(sum(t.timers) FILTER (WHERE t.status = 'failed'), 0) AS failed
FROM (
    SELECT value AS namespace FROM json_each(coalesce(?1, '["default"]'))
    UNION
    SELECT namespace FROM tally WHERE ?1 IS NULL AND timers > 0
) n
LEFT JOIN tally t ON t.namespace = n.namespace
GROUP BY n.namespace
ORDER BY n.namespace
LIMIT ?2
