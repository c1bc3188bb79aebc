-- The channel on which nodes are notified, see nudge.sql.
SELECT 'timer_due_' || to_regclass('shard')::oid
