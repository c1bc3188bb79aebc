-- The ends in a period, as events of kind 4.
-- ?1 after, ?2 until, ?3 limit
SELECT finished_at AS position, id, 4 AS kind, 0 AS seq, finished_at AS moment, status
FROM outcome
WHERE finished_at > ?1 AND finished_at <= ?2
ORDER BY finished_at
LIMIT ?3
