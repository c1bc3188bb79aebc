-- What, when, what happened. Times are microseconds since 1970 in UTC; `minute` is the minute that holds a time.

-- How many shards there are, for ever: a timer's shard is a function of its id and of this number.
CREATE TABLE timer_setup (
    one    boolean  PRIMARY KEY DEFAULT true CHECK (one),
    shards smallint NOT NULL CHECK (shards > 0)
);

INSERT INTO timer_setup (shards) VALUES (64);

CREATE TABLE definition (
    id              uuid   NOT NULL PRIMARY KEY,
    asked           bigint NOT NULL,
    execute_at      bigint NOT NULL,
    due_minute      bigint NOT NULL,
    created_at      bigint NOT NULL,
    updated_at      bigint NOT NULL,
    revision        bigint NOT NULL,
    -- Byte order: no query reads these sorted, and the rules of a language make every comparison dear.
    namespace       text   NOT NULL COLLATE "C",
    key             text   COLLATE "C",
    callback_type   text   NOT NULL COLLATE "C",
    delivery        text   NOT NULL COLLATE "C",
    fingerprint     bytea  NOT NULL,
    correlation_id  text   COLLATE "C",
    retry_policy    text   COLLATE "C",
    metadata        text   COLLATE "C",
    callback_config text   NOT NULL COLLATE "C"
);

CREATE INDEX definition_created ON definition (created_at, id);
CREATE INDEX definition_namespace ON definition (namespace, created_at, id) WHERE namespace <> 'default';
-- By the minute, never by the exact time: with a million pending, every insert would dirty a page of its own.
CREATE INDEX definition_execute ON definition ((execute_at / 60000000));

-- The key is all that is indexed, so that a claim, which changes only other columns, stays on its page (a HOT update) and
-- leaves the index alone. For that the page needs room for every row a second time, the second time with a claim in it.
CREATE TABLE due (
    shard       smallint NOT NULL,
    attempt     integer  NOT NULL,
    minute      bigint   NOT NULL,
    id          uuid     NOT NULL,
    at          bigint   NOT NULL,
    destination bigint   NOT NULL,
    claim       bigint,
    epoch       bigint,
    lease_until bigint,
    last_error  text     COLLATE "C",
    PRIMARY KEY (shard, minute, id)
) WITH (
    fillfactor = 40,
    -- Every timer leaves a dead row behind: clean up often and in small portions. Giving pages back to the system would lock
    -- the table, and they will be needed again.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.05,
    vacuum_truncate = false
);

CREATE TABLE outcome (
    id          uuid    NOT NULL PRIMARY KEY,
    executed_at bigint,
    finished_at bigint  NOT NULL,
    attempt     integer NOT NULL,
    status      text    NOT NULL COLLATE "C",
    last_error  text    COLLATE "C"
);

CREATE INDEX outcome_finished ON outcome (finished_at);
-- What is rare among millions of completed timers is found at once.
CREATE INDEX outcome_failed ON outcome (id) WHERE status = 'failed';
CREATE INDEX outcome_canceled ON outcome (id) WHERE status = 'canceled';

CREATE TABLE shard (
    shard       smallint NOT NULL PRIMARY KEY,
    epoch       bigint   NOT NULL,
    owner       uuid,
    lease_until bigint   NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

INSERT INTO shard (shard, epoch, owner, lease_until)
SELECT n, 0, NULL, 0 FROM timer_setup, generate_series(0, shards - 1) AS n;

-- For people: everything under plain names, ids as text and times as timestamps.
CREATE VIEW timers AS
SELECT
    f.id::text AS id,
    f.namespace,
    f.key,
    to_timestamp(f.created_at / 1000000.0) AS created_at,
    to_timestamp(coalesce(o.finished_at, f.updated_at) / 1000000.0) AS updated_at,
    to_timestamp(f.execute_at / 1000000.0) AS execute_at,
    f.callback_type,
    f.callback_config,
    CASE WHEN o.id IS NOT NULL THEN o.status WHEN d.claim IS NOT NULL THEN 'executing' ELSE 'pending' END AS status,
    coalesce(d.attempt, o.attempt) AS attempt,
    coalesce(d.last_error, o.last_error) AS last_error,
    to_timestamp(d.at / 1000000.0) AS next_attempt_at,
    to_timestamp(o.executed_at / 1000000.0) AS executed_at,
    f.metadata,
    f.correlation_id,
    f.retry_policy,
    f.delivery,
    f.revision
FROM definition f
CROSS JOIN timer_setup s
LEFT JOIN due d
    ON d.shard = ((get_byte(uuid_send(f.id), 14) * 256 + get_byte(uuid_send(f.id), 15)) % s.shards)::smallint
    AND d.minute = f.due_minute
    AND d.id = f.id
LEFT JOIN outcome o ON o.id = f.id;
