-- Gives all shards of a node back.
-- node
UPDATE shard
SET owner = NULL
WHERE owner = ?
