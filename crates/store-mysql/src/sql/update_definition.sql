-- Replaces the definition of a timer that is locked.
UPDATE definition
SET namespace = ?, `key` = ?, asked = ?, execute_at = ?, due_at = ?, callback_type = ?, callback_config = ?,
    metadata = ?, correlation_id = ?, retry_policy = ?, delivery = ?, fingerprint = ?, created_at = ?,
    updated_at = ?, revision = ?, options = ?, group_name = ?
WHERE id = ?
