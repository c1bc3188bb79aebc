-- Forgets a node and gives its shards back. What an acquisition that is still under way takes
-- afterwards belongs to a node that is not there, and is free for every other.
-- $1 node
WITH gone AS (
    DELETE FROM node WHERE id = $1::uuid
), forgotten AS (
    DELETE FROM tenure WHERE node = $1::uuid
)
UPDATE shard SET owner = NULL WHERE owner = $1::uuid
