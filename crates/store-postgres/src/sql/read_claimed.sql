-- Reads what was claimed. Asks for nothing but the token and the epoch: a claim belongs to its
-- maker until another node has settled it.
-- $1 shards, $2 due times, $3 ids, $4 epochs, one of each for every entry; $5 token
SELECT
    d.shard, d.epoch, d.at, d.id, d.destination, d.attempt, d.last_error, d.claim,
    f.namespace, f.key, f.asked, f.execute_at, f.callback_config, f.metadata, f.correlation_id, f.retry_policy,
    f.delivery, f.revision, f.created_at, f.updated_at, f.options, f.group_name
FROM unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::bigint[]) AS e (shard, at, id, epoch)
JOIN due d
    ON d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim = $5::bigint AND d.epoch = e.epoch
LEFT JOIN definition f ON f.id = ANY (ARRAY[e.id])
