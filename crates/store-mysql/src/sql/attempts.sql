-- The attempts that are remembered of one timer, in the order in which they were recorded.
-- id
SELECT number, started_at, took, outcome, status, detail, answer
FROM attempt
WHERE id = ?
ORDER BY seq
