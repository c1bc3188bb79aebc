-- Gives a shard back, if the node still holds it under this epoch.
-- ?1 shard, ?2 epoch, ?3 node
UPDATE shard
SET owner = NULL
WHERE shard = ?1 AND epoch = ?2 AND owner = ?3
