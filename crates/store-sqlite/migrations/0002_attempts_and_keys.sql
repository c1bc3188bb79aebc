-- What is remembered of deliveries. A timer's attempts stand together, in the order in which they were recorded (`seq`);
-- most timers have none.
CREATE TABLE attempt (
    id         BLOB    NOT NULL,
    seq        INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    took       INTEGER NOT NULL,
    outcome    TEXT    NOT NULL,
    status     INTEGER,
    detail     TEXT,
    PRIMARY KEY (id, seq)
) STRICT, WITHOUT ROWID;

-- Who may do what: never a key itself, only its SHA-256. `namespaces` is a JSON array of names, or NULL for all of them.
CREATE TABLE access_key (
    id         BLOB    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE,
    namespaces TEXT,
    rights     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
