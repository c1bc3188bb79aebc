-- The nodes that live, and the shards that one of them holds.
-- now, node
SELECT id, name, version, started_at, takes_shards, skew_micros, lease_until, NULL AS shard, NULL AS epoch
FROM node
WHERE lease_until > ?
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, shard, epoch
FROM shard
WHERE owner = ?
