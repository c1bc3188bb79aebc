-- How far an operation has come that is locked.
-- $1 id, $2 and $3 cursor, $4 changed, $5 skipped, $6 errors, $7 lease in microseconds, $8 how many
-- timers match, if they were counted
UPDATE operation
SET cursor_at = $2, cursor_id = $3, changed = changed + $4, skipped = skipped + $5, errors = errors + $6,
    matched = coalesce($8::bigint, matched),
    lease_until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $7
WHERE id = $1
