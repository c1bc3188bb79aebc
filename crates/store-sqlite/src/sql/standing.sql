-- A timer that may be claimed: it is pending, or an earlier call with the same token has claimed
-- it. The columns of its definition come first: see definition_by_id.sql. They are NULL if it is
-- missing.
-- ?1 minute and ?2 id of the row, ?3 due time, ?4 token, ?5 epoch
SELECT
    d.id, d.namespace, d.key, d.asked, d.callback_config, d.metadata, d.correlation_id, d.retry_policy, d.delivery,
    d.execute_at, d.created_at, d.updated_at, d.revision, d.options, d.group_name,
    u.attempt, u.last_error, u.destination, u.claim, u.namespace AS due_namespace
FROM due u
LEFT JOIN definition d ON d.id = u.id
WHERE u.shard = 0 AND u.minute = ?1 AND u.id = ?2 AND u.at = ?3 AND (u.claim IS NULL OR (u.claim = ?4 AND u.epoch = ?5))
