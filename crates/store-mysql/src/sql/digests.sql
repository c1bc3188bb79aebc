-- What nodes did within some minutes, in some namespaces.
-- namespaces in hexadecimal, the first minute and the one after the last
SELECT g.namespace, g.minute, g.node, g.report
FROM JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(2040) PATH '$')) w
STRAIGHT_JOIN digest g ON g.namespace = UNHEX(w.name)
WHERE g.minute >= ? AND g.minute < ?
