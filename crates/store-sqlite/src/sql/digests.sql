-- What nodes did within some minutes, in some namespaces.
-- ?1 the namespaces as a JSON array, ?2 and ?3 the first minute and the one after the last
SELECT d.namespace, d.minute, d.node, d.report
FROM json_each(?1) n
CROSS JOIN digest d ON d.namespace = n.value AND d.minute >= ?2 AND d.minute < ?3
