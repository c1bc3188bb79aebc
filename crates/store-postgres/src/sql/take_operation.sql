-- Takes the running operation that has waited longest, by this server's clock: since its lease ran
-- out, or since its start.
-- $1 lease in microseconds
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
), free AS MATERIALIZED (
    SELECT id FROM operation
    WHERE state = 'running' AND lease_until <= (SELECT now FROM clock)
    ORDER BY greatest(lease_until, started_at), id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE operation o
SET epoch = o.epoch + 1, lease_until = (SELECT now FROM clock) + $1::bigint
FROM free
WHERE o.id = free.id
RETURNING
    o.id, o.key_id, o.by_name, o.work, o.filter, o.state, o.matched, o.expected_max, o.changed, o.skipped, o.errors, o.error,
    o.cursor_at, o.cursor_id, o.started_at, o.finished_at, o.epoch
