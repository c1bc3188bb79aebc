-- Gives shards back, as far as the node still holds them under these epochs.
-- rows with shard, epoch; node
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard SMALLINT PATH '$.shard', epoch BIGINT PATH '$.epoch')) w
STRAIGHT_JOIN shard s ON s.shard = w.shard AND s.epoch = w.epoch
SET s.owner = NULL
WHERE s.owner = ?
