-- The revisions of timers that are locked.
-- ids
SELECT f.id, f.revision
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
