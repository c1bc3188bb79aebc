-- Replaces the definition of a timer that was pending, and leaves it waiting for the attempt that
-- it waits for, or for its expiry: beside that only its destination is another.
-- $1 id, $2 to $16 the definition, among them $6 when its next attempt is due, $17 destination, $18
-- shard, $19 options, $20 group, $21 when its next attempt was due
WITH placed AS (
    UPDATE due
    SET at = $6, destination = $17
    WHERE shard = $18 AND at = $21 AND id = $1
)
UPDATE definition
SET namespace = $2, key = $3, asked = $4, execute_at = $5, due_at = $6, callback_type = $7, callback_config = $8,
    metadata = $9, correlation_id = $10, retry_policy = $11, delivery = $12, fingerprint = $13, created_at = $14,
    updated_at = $15, revision = $16, options = $19, group_name = $20
WHERE id = $1
