-- Nodes live, and shards are held as long as their owner does. A program of the version before cannot go on beside this one.

-- No node may take or renew a shard by the old rules while its owner is carried over.
LOCK TABLE shard IN ACCESS EXCLUSIVE MODE;

-- Each row is written several times a second: on its page (nothing that changes is indexed), which has room for many versions.
CREATE TABLE node (
    id           uuid    NOT NULL PRIMARY KEY,
    started_at   bigint  NOT NULL,
    -- How far its clock is ahead of this server's, in microseconds.
    skew_micros  bigint  NOT NULL,
    -- It lives until then by this server's clock.
    lease_until  bigint  NOT NULL,
    takes_shards boolean NOT NULL,
    name         text    NOT NULL COLLATE "C",
    version      text    NOT NULL COLLATE "C"
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- Who held which shard in which epoch: a claim stays its maker's for as long as that node lives.
CREATE TABLE tenure (
    epoch bigint   NOT NULL,
    node  uuid     NOT NULL,
    shard smallint NOT NULL,
    PRIMARY KEY (shard, epoch)
);

CREATE INDEX tenure_node ON tenure (node);

INSERT INTO node (id, started_at, skew_micros, lease_until, takes_shards, name, version)
SELECT owner, 0, 0, max(lease_until), false, '', '' FROM shard WHERE owner IS NOT NULL GROUP BY owner;

INSERT INTO tenure (shard, epoch, node)
SELECT shard, epoch, owner FROM shard WHERE owner IS NOT NULL;

ALTER TABLE shard DROP COLUMN lease_until;
