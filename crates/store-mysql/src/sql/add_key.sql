-- Adds an API key.
-- id, SHA-256 of the key, created at, revoked at, name, rights, namespaces (NULL: all)
INSERT INTO access_key (id, hash, created_at, revoked_at, name, rights, namespaces)
VALUES (?, ?, ?, ?, ?, ?, ?)
