-- Some of the attempts that are remembered, each by its timer and number.
-- $1 ids, $2 numbers
SELECT w.n, a.number, a.started_at, a.took, a.outcome, a.status, a.detail, a.answer
FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS w (id, seq, n)
JOIN attempt a ON a.id = ANY (ARRAY[w.id]) AND a.seq = w.seq
