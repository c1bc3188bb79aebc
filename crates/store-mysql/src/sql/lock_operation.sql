-- Locks an operation that runs under this epoch.
-- id, epoch
SELECT id
FROM operation
WHERE id = ? AND epoch = ? AND state = 'running'
FOR UPDATE
