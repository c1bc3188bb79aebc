-- One of the attempts that are remembered of a timer.
-- ?1 id, ?2 seq
SELECT number, started_at, took, outcome, status, detail, answer
FROM attempt
WHERE id = ?1 AND seq = ?2
