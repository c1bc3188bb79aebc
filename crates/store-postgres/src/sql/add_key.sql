-- Adds an API key, unless its id or its hash is there already.
-- $1 id, $2 SHA-256 of the key, $3 created at, $4 revoked at, $5 name, $6 rights, $7 namespaces
-- (NULL: all)
INSERT INTO access_key (id, hash, created_at, revoked_at, name, rights, namespaces)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT DO NOTHING
