-- What happened in a period: of each source the first ones, in their order.
-- $1 after, $2 until, $3 limit
(
    SELECT 0 AS source, created_at AS position, id, 1::smallint AS kind, 0::bigint AS seq, created_at AS moment, NULL AS status
    FROM definition
    WHERE created_at > $1::bigint AND created_at <= $2::bigint
    ORDER BY created_at
    LIMIT $3::bigint
)
UNION ALL
(
    SELECT 1, finished_at, id, 4::smallint, 0, finished_at, status
    FROM outcome
    WHERE finished_at > $1::bigint AND finished_at <= $2::bigint
    ORDER BY finished_at
    LIMIT $3::bigint
)
UNION ALL
(
    SELECT 2, at, id, kind, seq, moment, status
    FROM journal
    WHERE at > $1::bigint AND at <= $2::bigint
    ORDER BY at
    LIMIT $3::bigint
)
