-- Remembers attempts.
-- rows with id, seq, number, started_at, took, outcome, status, detail, answer
INSERT INTO attempt (id, seq, number, started_at, took, outcome, status, detail, answer)
SELECT UNHEX(w.id), w.seq, w.number, w.started_at, w.took, w.outcome, w.status, w.detail, w.answer
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    id CHAR(32) PATH '$.id', seq BIGINT PATH '$.seq', number INT PATH '$.number', started_at BIGINT PATH '$.started_at',
    took BIGINT PATH '$.took', outcome TEXT CHARACTER SET utf8mb4 PATH '$.outcome', status INT PATH '$.status',
    detail TEXT CHARACTER SET utf8mb4 PATH '$.detail', answer MEDIUMTEXT CHARACTER SET utf8mb4 PATH '$.answer'
)) w
