-- Records that claimed timers that are locked are tried again, or are due again.
-- rows with shard, at, id, next, attempt, error
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', next BIGINT PATH '$.next',
    attempt INT PATH '$.attempt', error TEXT CHARACTER SET utf8mb4 PATH '$.error'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id)
SET d.at = w.next, d.attempt = w.attempt, d.last_error = w.error, d.claim = NULL, d.epoch = NULL, d.lease_until = NULL
