-- How many timers of some shards are pending in each bucket. What is due later than now is not
-- claimed, so that the key alone tells about it, and the rows themselves are not read.
-- $1 shards, $2 and $3 from and to, $4 the length of a bucket, $5 what follows now; all times in
-- microseconds
SELECT p.bucket, sum(p.pending)::bigint AS pending
FROM (
    SELECT (at - $2::bigint) / $4::bigint AS bucket, count(*) AS pending
    FROM due
    WHERE shard = ANY ($1::smallint[]) AND at >= $2::bigint AND at < least($3::bigint, $5::bigint) AND claim IS NULL
    GROUP BY 1
    UNION ALL
    SELECT (at - $2::bigint) / $4::bigint AS bucket, count(*) AS pending
    FROM due
    WHERE shard = ANY ($1::smallint[]) AND at >= greatest($2::bigint, $5::bigint) AND at < $3::bigint
    GROUP BY 1
) p
GROUP BY p.bucket
