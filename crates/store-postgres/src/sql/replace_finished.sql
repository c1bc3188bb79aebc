-- Replaces the definition of a timer that had ended, and makes it pending again.
-- $1 id, $2 to $16 the definition, $17 destination, $18 shard, $19 options, $20 group
WITH gone AS (
    DELETE FROM outcome WHERE id = $1
), placed AS (
    INSERT INTO due (shard, id, at, attempt, destination) VALUES ($18, $1, $5, 0, $17)
)
UPDATE definition
SET namespace = $2, key = $3, asked = $4, execute_at = $5, due_at = $6, callback_type = $7, callback_config = $8,
    metadata = $9, correlation_id = $10, retry_policy = $11, delivery = $12, fingerprint = $13, created_at = $14,
    updated_at = $15, revision = $16, options = $19, group_name = $20
WHERE id = $1
