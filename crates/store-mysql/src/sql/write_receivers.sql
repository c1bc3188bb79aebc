-- Keeps what nodes know of receivers.
-- rows with node, namespace and destination in hexadecimal, written_at, report
INSERT INTO receiver (node, namespace, destination, written_at, report)
SELECT UNHEX(w.node), UNHEX(w.namespace), UNHEX(w.destination), w.written_at, w.report
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    node CHAR(32) PATH '$.node', namespace VARCHAR(2040) PATH '$.namespace',
    destination VARCHAR(2040) PATH '$.destination', written_at BIGINT PATH '$.written_at',
    report MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$.report'
)) w
ON DUPLICATE KEY UPDATE written_at = VALUES(written_at), report = VALUES(report)
