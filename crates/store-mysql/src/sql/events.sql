-- What happened in a period: of each source the first ones, in their order.
-- after, until and limit, for each of the three
(
    SELECT 0 AS source, created_at AS position, id, 1 AS kind, 0 AS seq, created_at AS moment, NULL AS status
    FROM definition
    WHERE created_at > ? AND created_at <= ?
    ORDER BY created_at
    LIMIT ?
)
UNION ALL
(
    SELECT 1, finished_at, id, 4, 0, finished_at, status
    FROM outcome
    WHERE finished_at > ? AND finished_at <= ?
    ORDER BY finished_at
    LIMIT ?
)
UNION ALL
(
    SELECT 2, at, id, kind, seq, moment, status
    FROM journal
    WHERE at > ? AND at <= ?
    ORDER BY at, n
    LIMIT ?
)
