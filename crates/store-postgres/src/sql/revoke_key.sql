-- Revokes an API key, once.
-- $1 id, $2 now
UPDATE access_key
SET revoked_at = $2
WHERE id = $1 AND revoked_at IS NULL
