-- Records an attempt.
-- ?1 id, ?2 seq, ?3 to ?9 the attempt
INSERT INTO attempt (id, seq, number, started_at, took, outcome, status, detail, answer)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
