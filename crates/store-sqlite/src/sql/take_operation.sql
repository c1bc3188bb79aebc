-- Takes an operation.
-- ?1 id, ?2 until when
UPDATE operation
SET epoch = epoch + 1, lease_until = ?2
WHERE id = ?1
