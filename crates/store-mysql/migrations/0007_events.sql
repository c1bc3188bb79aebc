-- What happened to timers and is in no row of theirs: changes, recorded attempts, and creations and ends that were written down
-- late. Nothing is written here for a timer that is created and settled in time. The program writes it, in the transaction of
-- the change: triggers would need a right that many servers give to no user.
CREATE TABLE IF NOT EXISTS journal (
    -- A moment of the transaction that wrote it, by this server's clock.
    at     BIGINT     NOT NULL,
    n      BIGINT     NOT NULL AUTO_INCREMENT,
    seq    BIGINT     NOT NULL,
    moment BIGINT,
    kind   SMALLINT   NOT NULL,
    id     BINARY(16) NOT NULL,
    status VARCHAR(16),
    PRIMARY KEY (at, n),
    KEY journal_n (n)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Which writes are under way. A transaction that records events holds a share lock on the latest row from its beginning to its end. A
-- reader of events adds a row: when the rows before it can be locked, every write that had begun before has ended.
CREATE TABLE IF NOT EXISTS generation (
    n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY
) ENGINE = InnoDB;

INSERT INTO generation (n) VALUES (1) ON DUPLICATE KEY UPDATE n = n;
