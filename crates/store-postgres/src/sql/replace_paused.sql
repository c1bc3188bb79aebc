-- Replaces the definition of a timer that was paused, and places its next attempt anew: attempts
-- start over. It stays paused.
-- $1 id, $2 to $16 the definition, $17 destination, $18 shard, $19 options, $20 group
WITH placed AS (
    UPDATE paused
    SET at = $5, attempt = 0, last_error = NULL, destination = $17
    WHERE id = $1 AND $18::smallint IS NOT NULL
)
UPDATE definition
SET namespace = $2, key = $3, asked = $4, execute_at = $5, due_at = $6, callback_type = $7, callback_config = $8,
    metadata = $9, correlation_id = $10, retry_policy = $11, delivery = $12, fingerprint = $13, created_at = $14,
    updated_at = $15, revision = $16, options = $19, group_name = $20
WHERE id = $1
