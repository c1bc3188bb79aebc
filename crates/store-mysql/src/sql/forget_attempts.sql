-- Forgets attempts that are too many.
-- rows with id, and seq, up to which they are forgotten
DELETE a
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$.id', seq BIGINT PATH '$.seq')) w
STRAIGHT_JOIN attempt a ON a.id = UNHEX(w.id) AND a.seq <= w.seq
