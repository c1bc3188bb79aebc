-- Makes timers that are pending, and locked, due at another time, with the reason for which their claims
-- let them expire.
-- rows with shard, at, id, next; reason
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', next BIGINT PATH '$.next'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id)
SET d.at = w.next, d.last_error = ?
