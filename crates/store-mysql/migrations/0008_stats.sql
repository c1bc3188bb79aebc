-- Statistics for operators: what each node writes down of its work.

-- One row for each node, minute and namespace; '' stands for all namespaces together. The report is JSON.
CREATE TABLE IF NOT EXISTS digest (
    namespace VARBINARY(1020) NOT NULL,
    minute    BIGINT          NOT NULL,
    node      BINARY(16)      NOT NULL,
    report    MEDIUMTEXT      NOT NULL,
    PRIMARY KEY (namespace, minute, node),
    KEY digest_minute (minute)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What each node knows of the receivers that it calls. The report is JSON.
CREATE TABLE IF NOT EXISTS receiver (
    node        BINARY(16)      NOT NULL,
    namespace   VARBINARY(1020) NOT NULL,
    destination VARBINARY(1020) NOT NULL,
    written_at  BIGINT          NOT NULL,
    report      MEDIUMTEXT      NOT NULL,
    PRIMARY KEY (node, namespace, destination),
    KEY receiver_written (written_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
