-- Locks the oldest running operation whose lease has run out.
-- now
SELECT id
FROM operation
WHERE state = 'running' AND lease_until <= ?
ORDER BY id
LIMIT 1
FOR UPDATE SKIP LOCKED
