-- What is due in one shard. The key has them in this order: a page reads what it shows, however
-- many are due at the same moment. Repeated for each shard.
-- shard, time and id after which it begins, the time again, until, limit
(
    SELECT shard, at, id, destination
    FROM due
    WHERE shard = ? AND ((at = ? AND id > ?) OR (at > ? AND at <= ?)) AND claim IS NULL
    ORDER BY at, id
    LIMIT ?
)
