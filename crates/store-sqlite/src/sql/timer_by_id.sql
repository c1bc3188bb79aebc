-- A timer by its id, whatever its status, with what a conflict is decided by. The columns of the
-- definition come first: see definition_by_id.sql.
-- ?1 id
SELECT
    d.id, d.namespace, d.key, d.asked, d.callback_config, d.metadata, d.correlation_id, d.retry_policy, d.delivery,
    d.execute_at, d.created_at, d.updated_at, d.revision, d.options, d.group_name,
    u.id IS NOT NULL AS waits, u.claim AS claim, u.attempt AS due_attempt, u.last_error AS due_last_error,
    o.status AS status, o.attempt AS outcome_attempt, o.last_error AS outcome_last_error, o.executed_at, o.finished_at,
    p.paused_at, p.note AS pause_note, p.attempt AS paused_attempt, p.last_error AS paused_last_error,
    d.fingerprint, d.due_minute
FROM definition d
LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id
LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id
WHERE d.id = ?1
