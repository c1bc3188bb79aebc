-- How many timers of a group there are, by their status. A timer that is neither due nor finished is
-- paused.
-- $1 namespace, $2 group, $3 how many are counted at most, $4 the number of shards
SELECT g.status, count(*) AS timers
FROM (
    SELECT CASE
        WHEN o.id IS NOT NULL THEN o.status
        WHEN d.claim IS NOT NULL THEN 'executing'
        WHEN d.id IS NOT NULL THEN 'pending'
        ELSE 'paused'
    END AS status
    FROM definition f
    -- OFFSET 0 as in read.sql.
    LEFT JOIN LATERAL (
        SELECT d.id, d.claim
        FROM due d
        WHERE d.shard = ((get_byte(uuid_send(f.id), 14) * 256 + get_byte(uuid_send(f.id), 15)) % $4::integer)::smallint
            AND d.at = coalesce(f.due_at, f.execute_at) AND d.id = f.id
        OFFSET 0
    ) d ON TRUE
    LEFT JOIN LATERAL (SELECT o.id, o.status FROM outcome o WHERE o.id = f.id OFFSET 0) o ON TRUE
    WHERE f.namespace = $1 AND f.group_name = $2
    LIMIT $3
) g
GROUP BY g.status
