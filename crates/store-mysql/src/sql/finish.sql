-- Gives claimed timers that are locked an outcome. Fails where there is one already, which cannot
-- be.
-- rows with id, status, attempt, error, finished_at
INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
SELECT UNHEX(w.id), w.status, w.attempt, w.error, w.finished_at, w.finished_at
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    id CHAR(32) PATH '$.id', status VARCHAR(16) PATH '$.status', attempt INT PATH '$.attempt',
    error TEXT CHARACTER SET utf8mb4 PATH '$.error', finished_at BIGINT PATH '$.finished_at'
)) w
