-- Locks the rows of claims that stand, in the order of the key.
-- rows with shard, at, id, token, place
SELECT k.place, d.epoch, d.attempt
FROM (
    SELECT DISTINCT w.shard, w.at, UNHEX(w.id) AS id, w.token, w.place
    FROM JSON_TABLE(?, '$[*]' COLUMNS (
        shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', token BIGINT PATH '$.token',
        place BIGINT PATH '$.place'
    )) w
) k
STRAIGHT_JOIN due d ON d.shard = k.shard AND d.at = k.at AND d.id = k.id
WHERE d.claim = k.token
FOR UPDATE
