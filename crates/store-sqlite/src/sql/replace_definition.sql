-- Replaces the definition of a pending timer.
-- ?1 id, ?2 to ?14 the definition, ?15 the minute in which its next attempt is due, ?16 options, ?17 group
UPDATE definition
SET namespace = ?2, key = ?3, asked = ?4, execute_at = ?5, execute_minute = ?6, due_minute = ?15,
    callback_type = ?7, delivery = ?8, revision = revision + 1, updated_at = ?9, fingerprint = ?10,
    correlation_id = ?11, retry_policy = ?12, metadata = ?13, callback_config = ?14, options = ?16,
    group_name = ?17
WHERE id = ?1
