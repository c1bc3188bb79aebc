-- Keeps a new operation, unless too many of the same key are running.
-- ?1 id, ?2 key, ?3 by, ?4 work, ?5 filter, ?6 matched, ?7 expected max, ?8 started at, ?9 how many
-- may run
INSERT INTO operation (
    id, key_id, by_name, work, filter, state, matched, expected_max, changed, skipped, errors, started_at, epoch, lease_until
)
SELECT ?1, ?2, ?3, ?4, ?5, 'running', ?6, ?7, 0, 0, 0, ?8, 0, 0
WHERE (SELECT count(*) FROM operation WHERE state = 'running' AND key_id IS ?2) < ?9
