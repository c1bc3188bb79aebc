-- What nodes know of receivers, the last written first.
-- limit
SELECT node, namespace, destination, written_at, report
FROM receiver
ORDER BY written_at DESC
LIMIT ?
