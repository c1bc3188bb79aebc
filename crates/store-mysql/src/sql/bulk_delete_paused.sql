-- Removes rows from `paused` that are locked.
-- rows with id
DELETE p
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) w
STRAIGHT_JOIN paused p ON p.id = UNHEX(w.id)
