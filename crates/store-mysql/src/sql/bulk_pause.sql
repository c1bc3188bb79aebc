-- Puts timers that are pending, and locked, among the paused ones.
-- now, note; rows with shard, at, id
INSERT INTO paused (id, at, destination, paused_at, attempt, last_error, note)
SELECT d.id, d.at, d.destination, ?, d.attempt, d.last_error, ?
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id)
