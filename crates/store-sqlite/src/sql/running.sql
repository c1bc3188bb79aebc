-- Whether an operation runs under this epoch.
-- ?1 id, ?2 epoch
SELECT count(*) AS running
FROM operation
WHERE id = ?1 AND epoch = ?2 AND state = 'running'
