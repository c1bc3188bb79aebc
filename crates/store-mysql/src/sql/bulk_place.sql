-- Makes the next attempts of timers due that have ended: attempts start over.
-- rows with shard, at, id, and their destination as next
INSERT INTO due (shard, at, id, destination, attempt)
SELECT w.shard, w.at, UNHEX(w.id), w.next, 0
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', next BIGINT PATH '$.next'
)) w
