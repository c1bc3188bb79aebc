-- What nodes did within some minutes, in some namespaces.
-- $1 namespaces, $2 and $3 the first minute and the one after the last
SELECT namespace, minute, node, report
FROM digest
WHERE namespace = ANY ($1::text[]) AND minute >= $2::bigint AND minute < $3::bigint
