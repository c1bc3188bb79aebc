-- What, when, what happened. Times are microseconds since 1970 in UTC.
--
-- This server commits each of these statements by itself, so every statement of a migration may be made again: a process that
-- dies in between leaves a start for the next one.
--
-- Texts that are compared are kept as bytes (UTF-8): no collation folds case, trailing blanks or normal forms. Other texts have a
-- character set, so that people can read them.

-- How many shards there are, for ever: a timer's shard is a function of its id and of this number.
CREATE TABLE IF NOT EXISTS timer_setup (
    one    TINYINT  NOT NULL PRIMARY KEY,
    shards SMALLINT NOT NULL
) ENGINE = InnoDB;

INSERT INTO timer_setup (one, shards) VALUES (1, 64) ON DUPLICATE KEY UPDATE one = 1;

CREATE TABLE IF NOT EXISTS definition (
    id              BINARY(16) NOT NULL PRIMARY KEY,
    shard           SMALLINT   NOT NULL,
    asked           BIGINT     NOT NULL,
    execute_at      BIGINT     NOT NULL,
    -- Where the row in `due` is, if not at `execute_at`: after a failed attempt.
    due_at          BIGINT,
    created_at      BIGINT     NOT NULL,
    updated_at      BIGINT     NOT NULL,
    revision        BIGINT     NOT NULL,
    fingerprint     BINARY(16) NOT NULL,
    namespace       VARBINARY(1020) NOT NULL,
    `key`           VARBINARY(1020),
    group_name      VARBINARY(1020),
    correlation_id  VARBINARY(1020),
    callback_type   VARCHAR(32) NOT NULL,
    delivery        VARCHAR(32) NOT NULL,
    retry_policy    MEDIUMTEXT,
    metadata        MEDIUMTEXT,
    callback_config MEDIUMTEXT NOT NULL,
    -- Fields that no query asks for, as JSON with a version; NULL where all of them have their defaults.
    options         MEDIUMTEXT,
    KEY definition_created (created_at, id),
    KEY definition_execute (execute_at, id),
    KEY definition_namespace (namespace, created_at, id),
    KEY definition_group (group_name, namespace, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The table is the index: rows lie in the order of the key. A claim changes no column of it, and so moves nothing.
CREATE TABLE IF NOT EXISTS due (
    shard       SMALLINT   NOT NULL,
    at          BIGINT     NOT NULL,
    id          BINARY(16) NOT NULL,
    destination BIGINT     NOT NULL,
    attempt     INT        NOT NULL,
    claim       BIGINT,
    epoch       BIGINT,
    lease_until BIGINT,
    last_error  TEXT,
    PRIMARY KEY (shard, at, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS outcome (
    id          BINARY(16)  NOT NULL PRIMARY KEY,
    executed_at BIGINT,
    finished_at BIGINT      NOT NULL,
    attempt     INT         NOT NULL,
    status      VARCHAR(16) NOT NULL,
    last_error  TEXT,
    KEY outcome_finished (finished_at),
    -- What is rare among millions of completed timers is found at once.
    KEY outcome_status (status, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS shard (
    shard SMALLINT NOT NULL PRIMARY KEY,
    epoch BIGINT   NOT NULL,
    owner BINARY(16)
) ENGINE = InnoDB;

INSERT INTO shard (shard, epoch)
WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n.n + 1 FROM n JOIN timer_setup s ON n.n + 1 < s.shards)
SELECT n, 0 FROM n
ON DUPLICATE KEY UPDATE epoch = epoch;
