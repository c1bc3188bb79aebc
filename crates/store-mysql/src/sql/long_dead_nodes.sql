-- Locks nodes that are long dead. Those whose rows another session holds are left to it; and those
-- that still hold a shard are not forgotten, for they may live again and go on under a shard lease
-- that must be known.
-- before
SELECT n.id
FROM node n
WHERE n.lease_until <= ? AND NOT EXISTS (SELECT 1 FROM shard s WHERE s.owner = n.id)
FOR UPDATE SKIP LOCKED
