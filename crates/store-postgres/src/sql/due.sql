-- What is due, a page for each shard. The key has them in this order: a page reads what it shows,
-- however many are due at the same moment.
-- $1 shards, $2 and $3 the time and the id after which each begins; $4 until, $5 limit
SELECT c.shard, p.at, p.id, p.destination
FROM unnest($1::smallint[], $2::bigint[], $3::uuid[]) AS c (shard, at, id)
CROSS JOIN LATERAL (
    SELECT d.at, d.id, d.destination
    FROM due d
    WHERE d.shard = c.shard AND d.at <= $4::bigint AND (d.at, d.id) > (c.at, c.id) AND d.claim IS NULL
    ORDER BY d.at, d.id
    LIMIT $5::bigint
) p
