-- The current shard leases, and those earlier ones whose owners live: what was claimed under them is
-- still theirs.
-- now
SELECT s.shard, s.epoch, 1 AS is_current
FROM shard s
UNION ALL
SELECT h.shard, h.epoch, 0
FROM tenure h
JOIN node n ON n.id = h.node
WHERE n.lease_until > ?
