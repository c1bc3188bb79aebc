-- Keeps what nodes did within some minutes.
-- rows with namespace in hexadecimal, minute, node, report
INSERT INTO digest (namespace, minute, node, report)
SELECT UNHEX(w.namespace), w.minute, UNHEX(w.node), w.report
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    namespace VARCHAR(2040) PATH '$.namespace', minute BIGINT PATH '$.minute', node CHAR(32) PATH '$.node',
    report MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$.report'
)) w
ON DUPLICATE KEY UPDATE report = VALUES(report)
