-- Claims due timers that are locked. No column of the key is changed, so the rows stay where they
-- are.
-- rows with shard, at, id, epoch; token, when the lease ends
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', epoch BIGINT PATH '$.epoch'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id)
SET d.claim = ?, d.epoch = w.epoch, d.lease_until = ?, d.attempt = d.attempt + 1
