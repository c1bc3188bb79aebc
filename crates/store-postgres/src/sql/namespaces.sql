-- The namespaces that have timers, except the default one, by name: each is found by one step along
-- the index, which leaves that one out.
-- $1 limit
WITH RECURSIVE name AS (
    (SELECT namespace FROM definition WHERE namespace <> 'default' ORDER BY namespace LIMIT 1)
    UNION ALL
    SELECT (
        SELECT f.namespace
        FROM definition f
        WHERE f.namespace <> 'default' AND f.namespace > n.namespace
        ORDER BY f.namespace
        LIMIT 1
    )
    FROM name n
    WHERE n.namespace IS NOT NULL
)
SELECT namespace FROM name WHERE namespace IS NOT NULL LIMIT $1::bigint
