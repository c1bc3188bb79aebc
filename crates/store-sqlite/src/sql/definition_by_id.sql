-- The definition of one timer: the first columns of timer_by_id.sql, in the same order.
-- ?1 id
SELECT
    d.id, d.namespace, d.key, d.asked, d.callback_config, d.metadata, d.correlation_id, d.retry_policy, d.delivery,
    d.execute_at, d.created_at, d.updated_at, d.revision, d.options, d.group_name
FROM definition d
WHERE d.id = ?1
