-- Gives timers that are paused, and locked, an outcome.
-- status, error, if there is one, now; rows with id
INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
SELECT p.id, ?, p.attempt, COALESCE(?, p.last_error), NULL, ?
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id')) w
STRAIGHT_JOIN paused p ON p.id = UNHEX(w.id)
