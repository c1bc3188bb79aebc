-- Writes new definitions. The ids come sorted: two batches that share some would otherwise wait for
-- each other. The row of values is repeated for each timer.
INSERT INTO definition (
    id, shard, asked, execute_at, created_at, updated_at, revision, fingerprint, namespace, `key`, group_name,
    correlation_id, callback_type, delivery, retry_policy, metadata, callback_config, options
)
VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
