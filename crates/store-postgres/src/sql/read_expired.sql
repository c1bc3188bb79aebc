-- Reads those of the expired claims that no node has settled since they were found.
-- $1 shards, $2 due times, $3 ids, $4 tokens, $5 epochs, one of each for every claim
SELECT
    d.shard, e.epoch, d.at, d.id, d.destination, d.attempt, d.last_error, d.claim,
    f.namespace, f.key, f.asked, f.execute_at, f.callback_config, f.metadata, f.correlation_id, f.retry_policy,
    f.delivery, f.revision, f.created_at, f.updated_at, f.options, f.group_name
FROM unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[]) AS e (shard, at, id, token, epoch)
JOIN due d ON d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim = e.token
LEFT JOIN definition f ON f.id = ANY (ARRAY[e.id])
