-- Forgets which shards a node has held.
-- node
DELETE FROM tenure
WHERE node = ?
