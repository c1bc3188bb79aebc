-- Forgets the attempts of timers that have ended, and are locked.
-- rows with id
DELETE a
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) w
STRAIGHT_JOIN attempt a ON a.id = UNHEX(w.id)
