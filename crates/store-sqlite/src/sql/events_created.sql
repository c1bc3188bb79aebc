-- The creations in a period, as events of kind 1.
-- ?1 after, ?2 until, ?3 limit
SELECT created_at AS position, id, 1 AS kind, 0 AS seq, created_at AS moment, NULL AS status
FROM definition
WHERE created_at > ?1 AND created_at <= ?2
ORDER BY created_at
LIMIT ?3
