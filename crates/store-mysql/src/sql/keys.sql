-- Every API key. There are few of them.
SELECT id, hash, created_at, revoked_at, name, rights, namespaces
FROM access_key
ORDER BY created_at, id
