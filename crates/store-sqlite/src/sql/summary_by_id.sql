-- What a list shows of one timer.
-- ?1 id
SELECT
    d.id, d.namespace, d.key, d.callback_type, d.correlation_id, d.execute_at, d.created_at,
    coalesce(o.finished_at, d.updated_at) AS updated_at,
    CASE WHEN o.id IS NOT NULL THEN o.status WHEN u.claim IS NOT NULL THEN 'executing' ELSE 'pending' END AS status,
    coalesce(u.attempt, o.attempt, 0) AS attempt, coalesce(u.last_error, o.last_error) AS last_error, o.executed_at
FROM definition d
LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id
WHERE d.id = ?1
