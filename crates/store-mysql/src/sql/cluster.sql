-- The nodes, dead ones included, and the shards.
-- the end of the oldest lease that is shown
SELECT id, name, version, started_at, takes_shards, skew_micros, lease_until, NULL AS shard, NULL AS epoch, NULL AS owner
FROM node
WHERE lease_until > ?
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, shard, epoch, owner
FROM shard
