-- What nodes know of receivers, the last written first.
-- ?1 the namespaces as a JSON array, NULL for all; ?2 limit
SELECT node, namespace, destination, written_at, report
FROM receiver
WHERE ?1 IS NULL OR namespace IN (SELECT value FROM json_each(?1))
ORDER BY written_at DESC
LIMIT ?2
