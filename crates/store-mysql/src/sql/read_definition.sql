-- The definition of one timer whose row in `due`, `outcome` or `paused` is locked.
-- id
SELECT
    f.namespace, f.`key`, f.asked, f.execute_at, f.callback_config, f.metadata, f.correlation_id, f.retry_policy,
    f.delivery, f.revision, f.created_at, f.updated_at, f.options, f.group_name, f.fingerprint
FROM definition f
WHERE f.id = ?
