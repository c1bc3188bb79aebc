-- A shard is held for as long as its owner lives, and a node lives no longer than the process that has this file open: who lives is
-- known to that process alone.
ALTER TABLE shard DROP COLUMN lease_until;
