-- The metadata of timers, as far as it takes no more than so many bytes. What is too much is told
-- by its length alone, which the server knows without reading it.
-- $1 ids, $2 bytes at most
SELECT s.metadata
FROM (
    SELECT w.n, f.metadata, sum(octet_length(f.metadata)) OVER (ORDER BY w.n) AS bytes
    FROM unnest($1::uuid[]) WITH ORDINALITY AS w (id, n)
    LEFT JOIN definition f ON f.id = ANY (ARRAY[w.id])
) s
WHERE s.n = 1 OR coalesce(s.bytes, 0) <= $2
ORDER BY s.n
