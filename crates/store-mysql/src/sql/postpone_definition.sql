-- The definition follows a timer that is tried again at another time, or is due again: then its
-- revision rises.
-- rows with id, next, again
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
    id CHAR(32) PATH '$.id', next BIGINT PATH '$.next', again TINYINT PATH '$.again'
)) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
SET f.due_at = IF(w.again, NULL, w.next), f.execute_at = IF(w.again, w.next, f.execute_at),
    f.revision = f.revision + w.again
