-- How many timers of some shards are pending in each bucket.
-- from, the length of a bucket; from, to; all times in microseconds
SELECT (at - ?) DIV ? AS bucket, COUNT(*) AS pending
FROM due
WHERE shard IN (/* shards */ 0) AND at >= ? AND at < ? AND claim IS NULL
GROUP BY bucket
