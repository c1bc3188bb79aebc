-- What finished long ago.
-- ?1 before, ?2 limit
SELECT minute, id, namespace, status
FROM outcome
WHERE finished_at < ?1
ORDER BY finished_at
LIMIT ?2
