-- Locks the running operation that has waited longest: since its lease ran out, or since its start.
-- now
SELECT id
FROM operation
WHERE state = 'running' AND lease_until <= ?
ORDER BY GREATEST(lease_until, started_at), id
LIMIT 1
FOR UPDATE SKIP LOCKED
