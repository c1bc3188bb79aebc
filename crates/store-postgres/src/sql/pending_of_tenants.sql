-- How many timers of some shards are pending, and when the first is due, by tenant.
-- $1 shards
SELECT (destination >> 40) & 16777215 AS tenant, count(*) AS pending, min(at) AS first
FROM due
WHERE shard = ANY ($1::smallint[]) AND claim IS NULL
GROUP BY 1
