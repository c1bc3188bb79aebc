-- How far an operation has come, if it still runs under this epoch.
-- ?1 id, ?2 epoch, ?3 and ?4 cursor, ?5 changed, ?6 skipped, ?7 errors, ?8 until when it is leased, ?9 how
-- many timers match, if they were counted
UPDATE operation
SET cursor_at = ?3, cursor_id = ?4, changed = changed + ?5, skipped = skipped + ?6, errors = errors + ?7,
    lease_until = ?8, matched = coalesce(?9, matched)
WHERE id = ?1 AND epoch = ?2 AND state = 'running'
