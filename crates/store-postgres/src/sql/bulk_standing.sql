-- Where timers stand, without what can be large. Each due time is looked up first: the planner then
-- goes by the whole key of `due`.
-- $1 ids, $2 shards
WITH wanted AS MATERIALIZED (
    SELECT w.id, w.shard, f.revision, f.execute_at, coalesce(f.due_at, f.execute_at) AS at
    FROM unnest($1::uuid[], $2::smallint[]) AS w (id, shard)
    JOIN definition f ON f.id = ANY (ARRAY[w.id])
)
SELECT
    w.id, w.revision, w.execute_at, d.id IS NOT NULL AS waits, d.claim IS NOT NULL AS claimed, coalesce(d.at, p.at) AS at,
    coalesce(d.destination, p.destination) AS destination, p.id IS NOT NULL AS paused, o.status
FROM wanted w
LEFT JOIN due d ON d.shard = ANY (ARRAY[w.shard]) AND d.at = w.at AND d.id = w.id
LEFT JOIN outcome o ON o.id = ANY (ARRAY[w.id])
LEFT JOIN paused p ON p.id = ANY (ARRAY[w.id])
