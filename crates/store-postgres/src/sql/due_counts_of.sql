-- How many timers of some shards and some namespaces are pending in each bucket. The tenant in the
-- destination leaves out most others; of the rest, the definition says whose they are.
-- $1 shards, $2 and $3 from and to, $4 the length of a bucket; all times in microseconds; $5
-- tenants, $6 namespaces
SELECT (d.at - $2::bigint) / $4::bigint AS bucket, count(*) AS pending
FROM due d
WHERE d.shard = ANY ($1::smallint[]) AND d.at >= $2::bigint AND d.at < $3::bigint AND d.claim IS NULL
    AND ((d.destination >> 40) & 16777215) = ANY ($5::bigint[])
    AND (SELECT f.namespace FROM definition f WHERE f.id = d.id) = ANY ($6::text[])
GROUP BY 1
