-- Adds an API key, unless its id or its hash is there already.
-- ?1 id, ?2 name, ?3 SHA-256 of the key, ?4 namespaces as a JSON array (NULL: all), ?5 rights, ?6
-- created at, ?7 revoked at
INSERT INTO access_key (id, name, hash, namespaces, rights, created_at, revoked_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO NOTHING
