-- Gives timers that are pending, and locked, an outcome.
-- status, error, if there is one, now; rows with shard, at, id
INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
SELECT d.id, ?, d.attempt, COALESCE(?, d.last_error), NULL, ?
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id)
