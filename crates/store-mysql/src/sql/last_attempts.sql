-- The numbers of the last attempts that are remembered of timers. The session that settles a claim
-- holds its row in `due`: no other session counts on for this timer at the same time.
-- ids
SELECT a.id, MAX(a.seq) AS seq
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) w
STRAIGHT_JOIN attempt a ON a.id = UNHEX(w.id)
GROUP BY a.id
