-- The definition of a resumed timer says where its row in `due` is, if not at its due time.
-- rows with id, next; now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id', next BIGINT PATH '$.next')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
SET f.due_at = NULLIF(w.next, f.execute_at), f.updated_at = ?, f.revision = f.revision + 1
