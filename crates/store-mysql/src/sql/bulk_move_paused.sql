-- Gives timers that are paused, and locked, another due time: attempts start over.
-- rows with id, next
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id', next BIGINT PATH '$.next')) w
STRAIGHT_JOIN paused p ON p.id = UNHEX(w.id)
SET p.at = w.next, p.attempt = 0, p.last_error = NULL
