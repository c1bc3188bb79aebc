-- Timers that are locked were changed.
-- rows with id; now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
SET f.updated_at = ?, f.revision = f.revision + 1
