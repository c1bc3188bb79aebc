-- What is remembered of attempts, and who may come in. Only new tables: no node of the version before has to wait.

-- The last few attempts of each timer. `seq` counts on through all its lives; `number` starts over with each due time.
CREATE TABLE attempt (
    seq        bigint  NOT NULL,
    started_at bigint  NOT NULL,
    -- In microseconds.
    took       bigint  NOT NULL,
    number     integer NOT NULL,
    status     integer,
    id         uuid    NOT NULL,
    outcome    text    NOT NULL COLLATE "C",
    detail     text    COLLATE "C",
    PRIMARY KEY (id, seq)
);

CREATE TABLE access_key (
    id         uuid   NOT NULL PRIMARY KEY,
    -- SHA-256 of the key, which itself is nowhere.
    hash       bytea  NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at bigint NOT NULL,
    revoked_at bigint,
    name       text   NOT NULL COLLATE "C",
    rights     text   NOT NULL COLLATE "C",
    -- NULL opens every namespace.
    namespaces text[] COLLATE "C"
);
