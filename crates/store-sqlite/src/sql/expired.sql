-- Finds claims whose lease ran out or that were made under an earlier epoch, along an index that
-- holds what is claimed and nothing else, however long the backlog is.
-- ?1 shard, ?2 its epoch, ?3 now
SELECT id, at, destination, claim, attempt, last_error, epoch, lease_until
FROM due INDEXED BY due_claimed
WHERE claim IS NOT NULL AND shard = ?1 AND (epoch < ?2 OR lease_until <= ?3)
