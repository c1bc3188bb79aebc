-- Gives timers that are pending, and locked, another due time: attempts start over.
-- rows with shard, at, id, next
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', next BIGINT PATH '$.next'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id)
SET d.at = w.next, d.attempt = 0, d.last_error = NULL
