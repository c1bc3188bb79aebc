-- How many of these timers are pending still.
-- rows with shard, at, id
SELECT COUNT(*)
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id)
WHERE d.claim IS NULL
