-- Locks the rows in `due` of timers that are pending, in the order in which claims and settlements
-- take them, so that no two sessions wait for each other in a circle. DISTINCT makes the rows a
-- table of their own, which is not locked.
-- rows with shard, at, id
SELECT d.id
FROM (
    SELECT DISTINCT w.shard, w.at, UNHEX(w.id) AS id
    FROM JSON_TABLE(?, '$[*]' COLUMNS (
        shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id'
    )) w
) k
STRAIGHT_JOIN due d ON d.shard = k.shard AND d.at = k.at AND d.id = k.id
WHERE d.claim IS NULL
FOR UPDATE
