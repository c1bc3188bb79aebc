-- Removes timers that have ended, and are locked.
-- rows with id
DELETE f
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
