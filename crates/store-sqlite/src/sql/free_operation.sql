-- The oldest running operation whose lease has run out.
-- ?1 now
SELECT id
FROM operation
WHERE state = 'running' AND lease_until <= ?1
ORDER BY id
LIMIT 1
