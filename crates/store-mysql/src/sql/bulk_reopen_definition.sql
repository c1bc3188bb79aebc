-- Timers that had ended are tried again. Their due times stay; only the next attempts are placed
-- anew.
-- rows with id and at; now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id', at BIGINT PATH '$.at')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
SET f.due_at = w.at, f.updated_at = ?, f.revision = f.revision + 1
