-- Renews a node's lease.
-- node, name, version, started at, whether it takes shards, clock skew, when the lease ends
INSERT INTO node (id, name, version, started_at, takes_shards, skew_micros, lease_until)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE
    name = VALUES(name), version = VALUES(version), started_at = VALUES(started_at),
    takes_shards = VALUES(takes_shards), skew_micros = VALUES(skew_micros), lease_until = VALUES(lease_until)
