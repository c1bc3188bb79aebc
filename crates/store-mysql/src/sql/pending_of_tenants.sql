-- How many timers of some shards are pending, and when the first is due, by tenant.
SELECT CAST((destination >> 40) & 16777215 AS SIGNED) AS tenant, COUNT(*) AS pending, MIN(at) AS first_at
FROM due
WHERE shard IN (/* shards */ 0) AND claim IS NULL
GROUP BY tenant
