-- Tries a failed timer again. The due time stays what it was; only the next attempt is placed anew.
-- $1 id, $2 shard, $3 now, $4 destination, $5 revision
WITH gone AS (
    DELETE FROM outcome WHERE id = $1
), placed AS (
    INSERT INTO due (shard, id, at, attempt, destination) VALUES ($2, $1, $3, 0, $4)
)
UPDATE definition
SET due_at = $3, updated_at = $3, revision = $5
WHERE id = $1
