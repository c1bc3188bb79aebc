-- What, when, what happened. Times are microseconds since 1970 in UTC; `minute` is the minute that holds a time.

-- Small columns come first: a list then never reads the pages that only a large payload needs.
CREATE TABLE definition (
    id              BLOB    NOT NULL PRIMARY KEY,
    namespace       TEXT    NOT NULL,
    key             TEXT,
    asked           INTEGER NOT NULL,
    execute_at      INTEGER NOT NULL,
    execute_minute  INTEGER NOT NULL,
    due_minute      INTEGER NOT NULL,
    callback_type   TEXT    NOT NULL,
    delivery        TEXT    NOT NULL,
    revision        INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    fingerprint     BLOB    NOT NULL,
    correlation_id  TEXT,
    retry_policy    TEXT,
    metadata        TEXT,
    callback_config TEXT    NOT NULL
) STRICT;

CREATE INDEX definition_created ON definition (created_at, id);
CREATE INDEX definition_namespace ON definition (namespace, created_at, id) WHERE namespace <> 'default';
-- By the minute, never by the exact time: with a million pending, every insert would dirty a page of its own.
CREATE INDEX definition_execute ON definition (execute_minute);

-- Clustered by a coarse key, so that timers that are due together stand together.
CREATE TABLE due (
    shard       INTEGER NOT NULL,
    minute      INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    at          INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    last_error  TEXT,
    claim       INTEGER,
    epoch       INTEGER,
    lease_until INTEGER,
    PRIMARY KEY (shard, minute, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE outcome (
    id          BLOB    NOT NULL PRIMARY KEY,
    status      TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    last_error  TEXT,
    executed_at INTEGER,
    finished_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX outcome_finished ON outcome (finished_at);
-- What is rare among millions of completed timers is found at once.
CREATE INDEX outcome_failed ON outcome (id) WHERE status = 'failed';
CREATE INDEX outcome_canceled ON outcome (id) WHERE status = 'canceled';

CREATE TABLE shard (
    shard       INTEGER NOT NULL PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    owner       BLOB,
    lease_until INTEGER NOT NULL
) STRICT;

INSERT INTO shard (shard, epoch, owner, lease_until) VALUES (0, 0, NULL, 0);

-- For people: everything under plain names, ids and times as text.
CREATE VIEW timers AS
SELECT
    substr(lower(hex(d.id)), 1, 8) || '-' || substr(lower(hex(d.id)), 9, 4) || '-' || substr(lower(hex(d.id)), 13, 4)
        || '-' || substr(lower(hex(d.id)), 17, 4) || '-' || substr(lower(hex(d.id)), 21) AS id,
    d.namespace,
    d.key,
    strftime('%Y-%m-%dT%H:%M:%S', d.created_at / 1000000, 'unixepoch')
        || printf('.%06dZ', d.created_at % 1000000) AS created_at,
    strftime('%Y-%m-%dT%H:%M:%S', coalesce(o.finished_at, d.updated_at) / 1000000, 'unixepoch')
        || printf('.%06dZ', coalesce(o.finished_at, d.updated_at) % 1000000) AS updated_at,
    strftime('%Y-%m-%dT%H:%M:%S', d.execute_at / 1000000, 'unixepoch')
        || printf('.%06dZ', d.execute_at % 1000000) AS execute_at,
    d.callback_type,
    d.callback_config,
    CASE WHEN o.id IS NOT NULL THEN o.status WHEN u.claim IS NOT NULL THEN 'executing' ELSE 'pending' END AS status,
    coalesce(u.attempt, o.attempt) AS attempt,
    coalesce(u.last_error, o.last_error) AS last_error,
    strftime('%Y-%m-%dT%H:%M:%S', u.at / 1000000, 'unixepoch') || printf('.%06dZ', u.at % 1000000) AS next_attempt_at,
    strftime('%Y-%m-%dT%H:%M:%S', o.executed_at / 1000000, 'unixepoch')
        || printf('.%06dZ', o.executed_at % 1000000) AS executed_at,
    d.metadata,
    d.correlation_id,
    d.retry_policy,
    d.delivery,
    d.revision
FROM definition d
LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
LEFT JOIN outcome o ON o.id = d.id;
