-- Revokes an API key, once.
-- now, id
UPDATE access_key
SET revoked_at = ?
WHERE id = ? AND revoked_at IS NULL
