-- The running operation that has waited longest: since its lease ran out, or since its start.
-- ?1 now
SELECT id
FROM operation
WHERE state = 'running' AND lease_until <= ?1
ORDER BY max(lease_until, started_at), id
LIMIT 1
