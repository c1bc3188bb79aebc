-- Takes shards that are locked, each under a new epoch.
-- shards; node
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard SMALLINT PATH '$')) w
STRAIGHT_JOIN shard s ON s.shard = w.shard
SET s.epoch = s.epoch + 1, s.owner = ?
