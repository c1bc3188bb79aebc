-- Makes timers due that are paused, and locked, with the reason for which their claims let them expire.
-- reason; rows with shard, id, next
INSERT INTO due (shard, at, id, destination, attempt, last_error)
SELECT w.shard, w.next, p.id, p.destination, p.attempt, ?
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', id CHAR(32) PATH '$.id', next BIGINT PATH '$.next'
)) w
STRAIGHT_JOIN paused p ON p.id = UNHEX(w.id)
