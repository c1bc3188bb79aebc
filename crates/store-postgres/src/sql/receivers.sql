-- What nodes know of receivers, the last written first.
-- $1 namespaces, NULL for all; $2 limit
SELECT node, namespace, destination, written_at, report
FROM receiver
WHERE $1::text[] IS NULL OR namespace = ANY ($1::text[])
ORDER BY written_at DESC
LIMIT $2::bigint
