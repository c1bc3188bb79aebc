-- Locks the rows in `paused` of timers, in the order of their ids. DISTINCT makes the rows a table of
-- their own, which is not locked.
-- rows with id
SELECT p.id
FROM (SELECT DISTINCT UNHEX(w.id) AS id FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) w) k
STRAIGHT_JOIN paused p ON p.id = k.id
FOR UPDATE
