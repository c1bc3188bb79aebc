-- Lists by time go along the tables that are clustered by it, so that a create writes to one place in the order of time, not to
-- two. What a timer is counted by stands beside it, so that no search has to look for its definition.

-- `execute_at` is only there while it is another time than `at`: before a retry. `namespace` is NULL for the default one.
ALTER TABLE due ADD COLUMN execute_at INTEGER;
ALTER TABLE due ADD COLUMN namespace TEXT;
-- Through the definitions as they stand in the file, which are by far the larger part: the sign keeps SQLite from looking for
-- each of them.
UPDATE due SET execute_at = nullif(d.execute_at, due.at), namespace = nullif(d.namespace, 'default')
FROM definition d
WHERE due.shard = 0 AND due.minute = d.due_minute AND due.id = +d.id AND (d.execute_at <> due.at OR d.namespace <> 'default');
CREATE INDEX due_moved ON due (execute_at, id) WHERE execute_at IS NOT NULL;
-- What is being delivered, among millions that are pending.
CREATE INDEX due_claimed ON due (minute) WHERE claim IS NOT NULL;

DROP VIEW timers;
DROP INDEX definition_execute;

-- Clustered by the minute of `execute_at`: what finishes together was mostly due together.
CREATE TABLE outcome_by_minute (
    minute      INTEGER NOT NULL,
    id          BLOB    NOT NULL,
    execute_at  INTEGER NOT NULL,
    status      TEXT    NOT NULL,
    attempt     INTEGER NOT NULL,
    namespace   TEXT,
    last_error  TEXT,
    executed_at INTEGER,
    finished_at INTEGER NOT NULL,
    PRIMARY KEY (minute, id)
) STRICT, WITHOUT ROWID;

INSERT INTO outcome_by_minute
SELECT d.execute_minute, o.id, d.execute_at, o.status, o.attempt, nullif(d.namespace, 'default'), o.last_error, o.executed_at, o.finished_at
FROM definition d CROSS JOIN outcome o ON o.id = d.id
ORDER BY d.execute_minute, o.id;
DROP TABLE outcome;
ALTER TABLE outcome_by_minute RENAME TO outcome;

CREATE INDEX outcome_finished ON outcome (finished_at);
-- What is rare among millions of completed timers is found at once.
CREATE INDEX outcome_failed ON outcome (id) WHERE status = 'failed';
CREATE INDEX outcome_canceled ON outcome (id) WHERE status = 'canceled';

-- How many timers there are. Kept by the transactions that change it.
CREATE TABLE tally (
    namespace TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    timers    INTEGER NOT NULL,
    PRIMARY KEY (namespace, status)
) STRICT, WITHOUT ROWID;

INSERT INTO tally
SELECT coalesce(namespace, 'default'), CASE WHEN claim IS NULL THEN 'pending' ELSE 'executing' END AS status, count(*)
FROM due GROUP BY namespace, claim IS NULL;
INSERT INTO tally SELECT coalesce(namespace, 'default'), status, count(*) FROM outcome GROUP BY namespace, status;

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
LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id;
