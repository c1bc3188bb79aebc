-- Where a timer stands, without what can be large.
-- ?1 id
SELECT
    d.revision, d.namespace, d.execute_at, d.created_at, d.due_minute,
    u.at AS due_at, u.claim IS NOT NULL AS claimed, u.destination AS due_destination,
    u.attempt AS due_attempt, u.last_error AS due_last_error,
    p.at AS paused_until, p.destination AS paused_destination, p.attempt AS paused_attempt,
    p.last_error AS paused_last_error, o.status, o.finished_at
FROM definition d
LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id
LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id
WHERE d.id = ?1
