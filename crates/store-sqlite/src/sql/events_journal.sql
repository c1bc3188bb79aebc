-- What the journal says of a period.
-- ?1 after, ?2 until, ?3 limit
SELECT at AS position, id, kind, seq, moment, status
FROM journal
WHERE at > ?1 AND at <= ?2
ORDER BY at
LIMIT ?3
