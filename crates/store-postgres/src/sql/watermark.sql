-- The moment at which this transaction began, which is before its snapshot, and the numbers of the
-- oldest transaction under way and of the next one.
SELECT
    (extract(epoch FROM now()) * 1000000)::bigint AS at,
    pg_snapshot_xmin(s)::text::bigint AS open, pg_snapshot_xmax(s)::text::bigint AS next
FROM pg_current_snapshot() AS s
