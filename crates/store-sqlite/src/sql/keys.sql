-- Every API key. There are few of them.
SELECT id, name, hash, namespaces, rights, created_at, revoked_at
FROM access_key
ORDER BY created_at, id
