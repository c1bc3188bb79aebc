-- When the oldest pending timer was due, if one is overdue. The first one of each shard is found by
-- the key, which has them in the order in which they are due.
-- now
SELECT MIN(first.at)
FROM (
    SELECT (
        SELECT d.at
        FROM due d
        WHERE d.shard = s.shard AND d.at <= ? AND d.claim IS NULL
        ORDER BY d.at
        LIMIT 1
    ) AS at
    FROM shard s
) first
