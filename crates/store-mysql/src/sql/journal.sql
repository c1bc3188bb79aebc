-- Records events.
-- the moment; rows with id, kind, seq, moment, status
INSERT INTO journal (at, kind, id, seq, moment, status)
SELECT ?, w.kind, UNHEX(w.id), w.seq, w.moment, w.status
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    id CHAR(32) PATH '$.id', kind SMALLINT PATH '$.kind', seq BIGINT PATH '$.seq', moment BIGINT PATH '$.moment',
    status VARCHAR(16) PATH '$.status'
)) w
