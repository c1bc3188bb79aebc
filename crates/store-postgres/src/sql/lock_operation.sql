-- Locks an operation that runs under this epoch.
-- $1 id, $2 epoch
SELECT id
FROM operation
WHERE id = $1 AND epoch = $2 AND state = 'running'
FOR UPDATE
