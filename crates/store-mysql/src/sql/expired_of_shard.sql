-- Looks through what is due in one shard for claims, of so many rows after a position; the last one
-- that may be looked at is shown in any case: there the next call goes on. Repeated for each shard.
-- shard, time and id after which it begins, the time again, until, limit, limit
(
    SELECT n.shard, n.at, n.id, n.claim, n.epoch, n.lease_until, n.number
    FROM (
        SELECT w.shard, w.at, w.id, w.claim, w.epoch, w.lease_until, CAST(ROW_NUMBER() OVER (ORDER BY w.at, w.id) AS SIGNED) AS number
        FROM (
            SELECT shard, at, id, claim, epoch, lease_until
            FROM due
            WHERE shard = ? AND ((at = ? AND id > ?) OR (at > ? AND at <= ?))
            ORDER BY at, id
            LIMIT ?
        ) w
    ) n
    WHERE n.claim IS NOT NULL OR n.number = ?
)
