-- What is remembered of attempts, and the API keys.

-- The last few attempts of each timer. `seq` counts on through all its lives; `number` starts over with each due time.
CREATE TABLE IF NOT EXISTS attempt (
    id         BINARY(16) NOT NULL,
    seq        BIGINT     NOT NULL,
    started_at BIGINT     NOT NULL,
    -- In microseconds.
    took       BIGINT     NOT NULL,
    number     INT        NOT NULL,
    status     INT,
    outcome    TEXT       NOT NULL,
    detail     TEXT,
    -- What a receiver answered, as JSON; NULL where that is not kept.
    answer     MEDIUMTEXT,
    PRIMARY KEY (id, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS access_key (
    id         BINARY(16) NOT NULL PRIMARY KEY,
    -- SHA-256 of the key, which itself is nowhere.
    hash       BINARY(32) NOT NULL UNIQUE,
    created_at BIGINT     NOT NULL,
    revoked_at BIGINT,
    name       TEXT       NOT NULL,
    rights     TEXT       NOT NULL,
    -- A JSON array; NULL opens every namespace.
    namespaces MEDIUMTEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
