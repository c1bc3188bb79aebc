-- Removes rows from `outcome` that are locked.
-- rows with id
DELETE o
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) w
STRAIGHT_JOIN outcome o ON o.id = UNHEX(w.id)
