-- Some of the attempts that are remembered, each by its timer and number.
-- rows with place, id, seq
SELECT w.place, a.number, a.started_at, a.took, a.outcome, a.status, a.detail, a.answer
FROM JSON_TABLE(?, '$[*]' COLUMNS (place BIGINT PATH '$.place', id CHAR(32) PATH '$.id', seq BIGINT PATH '$.seq')) w
STRAIGHT_JOIN attempt a ON a.id = UNHEX(w.id) AND a.seq = w.seq
