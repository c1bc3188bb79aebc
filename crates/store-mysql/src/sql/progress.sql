-- How far an operation has come that is locked.
-- cursor (time, id), changed, skipped, errors, how many timers match, if they were counted, lease in
-- microseconds; id
UPDATE operation
SET cursor_at = ?, cursor_id = ?, changed = changed + ?, skipped = skipped + ?, errors = errors + ?,
    matched = COALESCE(?, matched),
    lease_until = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + ?
WHERE id = ?
