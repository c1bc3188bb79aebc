-- Remembers under which epochs a node has taken shards.
-- node; shards
INSERT INTO tenure (shard, epoch, node)
SELECT s.shard, s.epoch, ?
FROM JSON_TABLE(?, '$[*]' COLUMNS (shard SMALLINT PATH '$')) w
STRAIGHT_JOIN shard s ON s.shard = w.shard
