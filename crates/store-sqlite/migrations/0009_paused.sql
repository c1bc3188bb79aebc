-- Paused timers stand in a table of their own: nothing that looks for what is due ever meets them, however many they are. Clustered by
-- the minute of `execute_at`, as outcomes are. `at` is when the next attempt is due, `namespace` is NULL for the default one.
CREATE TABLE paused (
    minute      INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    execute_at  INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    paused_at   INTEGER NOT NULL,
    namespace   TEXT,
    last_error  TEXT,
    note        TEXT,
    PRIMARY KEY (minute, id)
) STRICT, WITHOUT ROWID;

DROP VIEW timers;

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
    CASE
        WHEN o.id IS NOT NULL THEN o.status
        WHEN p.id IS NOT NULL THEN 'paused'
        WHEN u.claim IS NOT NULL THEN 'executing'
        ELSE 'pending'
    END AS status,
    coalesce(u.attempt, o.attempt, p.attempt) AS attempt,
    coalesce(u.last_error, o.last_error, p.last_error) AS last_error,
    strftime('%Y-%m-%dT%H:%M:%S', u.at / 1000000, 'unixepoch') || printf('.%06dZ', u.at % 1000000) AS next_attempt_at,
    strftime('%Y-%m-%dT%H:%M:%S', o.executed_at / 1000000, 'unixepoch')
        || printf('.%06dZ', o.executed_at % 1000000) AS executed_at,
    d.metadata,
    d.correlation_id,
    d.retry_policy,
    d.delivery,
    d.revision,
    d.options,
    strftime('%Y-%m-%dT%H:%M:%S', p.paused_at / 1000000, 'unixepoch') || printf('.%06dZ', p.paused_at % 1000000) AS paused_at,
    p.note AS pause_note
FROM definition d
LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id
LEFT JOIN paused p ON p.minute = d.execute_minute AND p.id = d.id;

-- Bulk changes that are carried out page by page. `work` and `filter` are texts of the program; `cursor_at` and `cursor_id` say up to
-- where it has come; `epoch` is the fencing token of the node whose lease runs until `lease_until`.
CREATE TABLE operation (
    id           BLOB    NOT NULL PRIMARY KEY,
    key_id       BLOB,
    by_name      TEXT    NOT NULL,
    work         TEXT    NOT NULL,
    filter       TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    matched      INTEGER NOT NULL,
    expected_max INTEGER NOT NULL,
    changed      INTEGER NOT NULL,
    skipped      INTEGER NOT NULL,
    errors       INTEGER NOT NULL,
    error        TEXT,
    cursor_at    INTEGER,
    cursor_id    BLOB,
    started_at   INTEGER NOT NULL,
    finished_at  INTEGER,
    epoch        INTEGER NOT NULL,
    lease_until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Few run at a time; all others only wait to be removed.
CREATE INDEX operation_running ON operation (id) WHERE state = 'running';
