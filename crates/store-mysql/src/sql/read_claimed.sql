-- Reads what was claimed. Asks for nothing but the token and the epoch: a claim belongs to its
-- maker until another node has settled it.
-- rows with shard, at, id, epoch; token
SELECT
    d.shard, d.epoch AS epoch, d.at, d.id, d.destination, d.attempt, d.last_error, d.claim,
    f.namespace, f.`key`, f.asked, f.execute_at, f.callback_config, f.metadata, f.correlation_id, f.retry_policy,
    f.delivery, f.revision, f.created_at, f.updated_at, f.options, f.group_name
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', epoch BIGINT PATH '$.epoch'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id) AND d.claim = ? AND d.epoch = w.epoch
LEFT JOIN definition f ON f.id = d.id
