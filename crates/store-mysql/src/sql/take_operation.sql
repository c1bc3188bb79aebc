-- Takes an operation that is locked.
-- when the lease ends, id
UPDATE operation
SET epoch = epoch + 1, lease_until = ?
WHERE id = ?
