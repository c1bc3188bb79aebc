-- Takes those of the wanted shards that are free or whose owner is dead, each under a new epoch.
--
-- Decides by one snapshot who is dead, then takes only what no other node has taken since: a row
-- that had to be waited for is looked at again as it is now, but its new owner may have begun to
-- live after the snapshot, and would look dead. The epoch tells.
--
-- A node that was dead in the snapshot may live again when its shards are taken, and be told by
-- that heartbeat that it still holds them. For what it claims from then on that is harmless. Until
-- this commits, its shard leases are current, and what it claims under them stays its own, for it
-- lives. Afterwards it claims nothing, because the epoch has risen, and its next heartbeat tells it
-- so. But what it had claimed before may be recovered until that heartbeat commits: a node that was
-- dead believes only a second one.
--
-- Nodes that are long dead are forgotten here, because this is rare. Those whose rows another
-- session holds are left to it, so that no node is waited for while a shard is held; and those that
-- still hold a shard are not forgotten, for they may live again and go on under a shard lease that
-- must be known.
-- $1 node, $2 shards, $3 for how many microseconds a dead node is kept
WITH clock AS MATERIALIZED (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
), alive AS MATERIALIZED (
    SELECT n.id FROM node n WHERE n.lease_until > (SELECT now FROM clock)
), free AS MATERIALIZED (
    SELECT s.shard, s.epoch, s.owner
    FROM shard s
    WHERE s.shard = ANY ($2::smallint[]) AND ($1::uuid IN (SELECT id FROM alive)) IS TRUE
        AND (s.owner IS NULL OR s.owner = $1::uuid OR (s.owner IN (SELECT id FROM alive)) IS NOT TRUE)
), taken AS (
    UPDATE shard s
    SET epoch = s.epoch + (s.owner IS DISTINCT FROM $1::uuid)::integer, owner = $1::uuid
    FROM free f
    WHERE s.shard = ANY (ARRAY[f.shard]) AND s.epoch = f.epoch AND (s.owner IS NULL OR s.owner IS NOT DISTINCT FROM f.owner)
    RETURNING s.shard, s.epoch
), remembered AS (
    INSERT INTO tenure (shard, epoch, node)
    SELECT shard, epoch, $1::uuid FROM taken
    ON CONFLICT (shard, epoch) DO NOTHING
), dead AS MATERIALIZED (
    SELECT n.id
    FROM node n
    WHERE n.lease_until <= (SELECT now FROM clock) - $3::bigint AND NOT EXISTS (
        SELECT FROM shard s WHERE s.owner = n.id AND (s.shard IN (SELECT shard FROM taken)) IS NOT TRUE
    )
    FOR UPDATE OF n SKIP LOCKED
), gone AS (
    DELETE FROM node n USING dead WHERE n.id = ANY (ARRAY[dead.id]) RETURNING n.id
), forgotten AS (
    DELETE FROM tenure h USING gone WHERE h.node = ANY (ARRAY[gone.id])
)
SELECT shard, epoch FROM taken
