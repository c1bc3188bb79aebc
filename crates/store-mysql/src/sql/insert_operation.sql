-- Keeps a new operation, unless too many of the same key are running.
-- id, key, by, work, filter, matched, expected max, started at; key, how many may run
INSERT INTO operation (
    id, key_id, by_name, work, filter, state, matched, expected_max, changed, skipped, errors, started_at, epoch, lease_until
)
SELECT ?, ?, ?, ?, ?, 'running', ?, ?, 0, 0, 0, ?, 0, 0
FROM (SELECT COUNT(*) AS running FROM operation WHERE state = 'running' AND key_id <=> ?) o
WHERE o.running < ?
