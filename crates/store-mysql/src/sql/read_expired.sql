-- Reads those of the expired claims that no node has settled since they were found.
-- rows with shard, at, id, token, epoch
SELECT
    d.shard, w.epoch AS epoch, d.at, d.id, d.destination, d.attempt, d.last_error, d.claim,
    f.namespace, f.`key`, f.asked, f.execute_at, f.callback_config, f.metadata, f.correlation_id, f.retry_policy,
    f.delivery, f.revision, f.created_at, f.updated_at, f.options, f.group_name
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    shard SMALLINT PATH '$.shard', at BIGINT PATH '$.at', id CHAR(32) PATH '$.id', token BIGINT PATH '$.token',
    epoch BIGINT PATH '$.epoch'
)) w
STRAIGHT_JOIN due d ON d.shard = w.shard AND d.at = w.at AND d.id = UNHEX(w.id) AND d.claim = w.token
LEFT JOIN definition f ON f.id = d.id
