-- Writes the definition of a new timer, if its id is free.
-- ?1 id, ?2 to ?14 the definition, ?15 revision, ?16 options, ?17 group
INSERT INTO definition (
    id, namespace, key, asked, execute_at, execute_minute, due_minute, callback_type, delivery,
    revision, created_at, updated_at, fingerprint, correlation_id, retry_policy, metadata, callback_config, options,
    group_name
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?15, ?9, ?9, ?10, ?11, ?12, ?13, ?14, ?16, ?17)
ON CONFLICT (id) DO NOTHING
