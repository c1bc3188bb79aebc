-- What the options of timers say, of those that have any.
-- ids
SELECT f.id, f.options
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
WHERE f.options IS NOT NULL
