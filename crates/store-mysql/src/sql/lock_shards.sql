-- Locks shards, in their order.
-- shards
SELECT s.shard, s.epoch, s.owner
FROM (SELECT DISTINCT w.shard FROM JSON_TABLE(?, '$[*]' COLUMNS (shard SMALLINT PATH '$')) w) k
STRAIGHT_JOIN shard s ON s.shard = k.shard
FOR UPDATE
