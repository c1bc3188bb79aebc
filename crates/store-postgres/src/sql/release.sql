-- Gives shards back, as far as the node still holds them under these epochs.
-- $1 node, $2 shards, $3 epochs
UPDATE shard s
SET owner = NULL
FROM unnest($2::smallint[], $3::bigint[]) AS t (shard, epoch)
WHERE s.shard = ANY (ARRAY[t.shard]) AND s.epoch = t.epoch AND s.owner = $1::uuid
