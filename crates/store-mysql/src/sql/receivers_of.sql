-- What nodes know of receivers in some namespaces, the last written first.
-- namespaces in hexadecimal, limit
SELECT r.node, r.namespace, r.destination, r.written_at, r.report
FROM JSON_TABLE(?, '$[*]' COLUMNS (name VARCHAR(2040) PATH '$')) w
JOIN receiver r ON r.namespace = UNHEX(w.name)
ORDER BY r.written_at DESC
LIMIT ?
