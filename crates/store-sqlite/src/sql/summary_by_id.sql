-- What a list shows of one timer.
-- ?1 id
SELECT
    d.id, d.namespace, d.key, d.group_name, d.callback_type, d.correlation_id, d.execute_at, d.created_at,
    coalesce(o.finished_at, d.updated_at) AS updated_at,
    CASE
        WHEN o.id IS NOT NULL THEN o.status
        WHEN p.id IS NOT NULL THEN 'paused'
        WHEN u.claim IS NOT NULL THEN 'executing'
        ELSE 'pending'
    END AS status,
    coalesce(u.attempt, o.attempt, p.attempt, 0) AS attempt,
    coalesce(u.last_error, o.last_error, p.last_error) AS last_error, o.executed_at, d.revision
FROM definition d
LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id
LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id
WHERE d.id = ?1
