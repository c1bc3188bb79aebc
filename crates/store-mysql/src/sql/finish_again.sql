-- Gives claimed timers that are locked an outcome. There cannot be one already. This is for a batch
-- that met one, in a damaged database: it must not hold up the whole batch.
-- rows with id, status, attempt, error, finished_at
INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
SELECT UNHEX(w.id), w.status, w.attempt, w.error, w.finished_at, w.finished_at
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    id CHAR(32) PATH '$.id', status VARCHAR(16) PATH '$.status', attempt INT PATH '$.attempt',
    error TEXT CHARACTER SET utf8mb4 PATH '$.error', finished_at BIGINT PATH '$.finished_at'
)) w
ON DUPLICATE KEY UPDATE
    status = VALUES(status), attempt = VALUES(attempt), last_error = VALUES(last_error),
    executed_at = VALUES(executed_at), finished_at = VALUES(finished_at)
