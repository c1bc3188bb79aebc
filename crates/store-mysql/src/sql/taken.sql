-- Which ids are taken.
-- ids
SELECT f.id
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
