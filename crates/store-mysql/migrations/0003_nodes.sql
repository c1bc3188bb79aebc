-- Nodes live, and shards are held as long as their owner does.

CREATE TABLE IF NOT EXISTS node (
    id           BINARY(16) NOT NULL PRIMARY KEY,
    started_at   BIGINT     NOT NULL,
    -- How far its clock is ahead of this server's, in microseconds.
    skew_micros  BIGINT     NOT NULL,
    -- It lives until then by this server's clock.
    lease_until  BIGINT     NOT NULL,
    takes_shards BOOLEAN    NOT NULL,
    name         TEXT       NOT NULL,
    version      TEXT       NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Who held which shard in which epoch: a claim stays its maker's for as long as that node lives.
CREATE TABLE IF NOT EXISTS tenure (
    shard SMALLINT   NOT NULL,
    epoch BIGINT     NOT NULL,
    node  BINARY(16) NOT NULL,
    PRIMARY KEY (shard, epoch),
    KEY tenure_node (node)
) ENGINE = InnoDB;

-- What nodes tell each other: timers that are due soon. Each node reads what is new several times a second. Kept in memory,
-- because it is worth nothing after a restart, and because a commit would wait for the disk. A server without this kind of table
-- takes its usual one.
CREATE TABLE IF NOT EXISTS nudge (
    n           BIGINT     NOT NULL AUTO_INCREMENT,
    -- The process that wrote it.
    sender      BIGINT     NOT NULL,
    at          BIGINT     NOT NULL,
    id          BINARY(16) NOT NULL,
    destination BIGINT     NOT NULL,
    PRIMARY KEY USING BTREE (n)
) ENGINE = MEMORY;
