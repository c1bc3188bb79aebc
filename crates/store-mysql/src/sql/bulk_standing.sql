-- Where timers stand, without what can be large.
-- ids
SELECT
    f.id, f.shard, f.revision, f.execute_at, d.id IS NOT NULL AS waits, d.claim IS NOT NULL AS claimed,
    COALESCE(d.at, p.at) AS at, COALESCE(d.destination, p.destination) AS destination, p.id IS NOT NULL AS paused, o.status, o.finished_at
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) w
STRAIGHT_JOIN definition f ON f.id = UNHEX(w.id)
LEFT JOIN due d ON d.shard = f.shard AND d.at = COALESCE(f.due_at, f.execute_at) AND d.id = f.id
LEFT JOIN outcome o ON o.id = f.id
LEFT JOIN paused p ON p.id = f.id
