-- Timers by their ids. One snapshot shows each timer in exactly one table: every move from one to
-- another is one commit.
-- ids
SELECT
    f.id, f.namespace, f.`key`, f.asked, f.execute_at, f.callback_config, f.metadata, f.correlation_id, f.retry_policy,
    f.delivery, f.revision, f.created_at, f.updated_at, f.options, f.group_name, f.fingerprint,
    d.id IS NOT NULL AS waits, d.claim IS NOT NULL AS claimed, COALESCE(d.attempt, o.attempt, p.attempt) AS attempt,
    COALESCE(d.last_error, o.last_error, p.last_error) AS last_error, o.status, o.executed_at, o.finished_at,
    p.paused_at, p.note AS pause_note
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
LEFT JOIN due d ON d.shard = f.shard AND d.at = COALESCE(f.due_at, f.execute_at) AND d.id = f.id
LEFT JOIN outcome o ON o.id = f.id
LEFT JOIN paused p ON p.id = f.id
