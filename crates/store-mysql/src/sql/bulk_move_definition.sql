-- The due times of timers that are locked are others than were asked for. What was asked stays, so
-- that a repeated request is still known.
-- rows with id, next; now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id', next BIGINT PATH '$.next')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
SET f.execute_at = w.next, f.due_at = NULL, f.updated_at = ?, f.revision = f.revision + 1
