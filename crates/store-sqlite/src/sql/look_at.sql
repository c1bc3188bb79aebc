-- What a filter asks about the definition of one timer. What can be large is read only where it is
-- asked about.
-- ?1 id, ?2 whether metadata is asked about, ?3 whether the callback is, ?4 how much of it has the
-- address
SELECT
    namespace, key, group_name, execute_at, created_at, correlation_id, iif(?2, metadata, NULL) AS metadata,
    iif(?3, substr(callback_config, 1, ?4), NULL) AS callback
FROM definition
WHERE id = ?1
