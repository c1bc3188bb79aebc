-- Paused timers stand in a table of their own: nothing that looks for what is due ever meets them, however many they are. `at` is when the
-- next attempt is due. A program of the version before goes on beside this; it cannot read timers that are paused.
CREATE TABLE paused (
    id          uuid    NOT NULL PRIMARY KEY,
    at          bigint  NOT NULL,
    destination bigint  NOT NULL,
    paused_at   bigint  NOT NULL,
    attempt     integer NOT NULL,
    last_error  text    COLLATE "C",
    note        text    COLLATE "C"
);

CREATE OR REPLACE VIEW timers AS
SELECT
    f.id::text AS id,
    f.namespace,
    f.key,
    to_timestamp(f.created_at / 1000000.0) AS created_at,
    to_timestamp(coalesce(o.finished_at, f.updated_at) / 1000000.0) AS updated_at,
    to_timestamp(f.execute_at / 1000000.0) AS execute_at,
    f.callback_type,
    f.callback_config,
    CASE
        WHEN o.id IS NOT NULL THEN o.status
        WHEN p.id IS NOT NULL THEN 'paused'
        WHEN d.claim IS NOT NULL THEN 'executing'
        ELSE 'pending'
    END AS status,
    coalesce(d.attempt, o.attempt, p.attempt) AS attempt,
    coalesce(d.last_error, o.last_error, p.last_error) AS last_error,
    to_timestamp(d.at / 1000000.0) AS next_attempt_at,
    to_timestamp(o.executed_at / 1000000.0) AS executed_at,
    f.metadata,
    f.correlation_id,
    f.retry_policy,
    f.delivery,
    f.revision,
    f.options,
    to_timestamp(p.paused_at / 1000000.0) AS paused_at,
    p.note AS pause_note
FROM definition f
CROSS JOIN timer_setup s
LEFT JOIN due d
    ON d.shard = ((get_byte(uuid_send(f.id), 14) * 256 + get_byte(uuid_send(f.id), 15)) % s.shards)::smallint
    AND d.at = coalesce(f.due_at, f.execute_at)
    AND d.id = f.id
LEFT JOIN outcome o ON o.id = f.id
LEFT JOIN paused p ON p.id = f.id;

-- Bulk changes that are carried out page by page. `work` and `filter` are texts of the program; `cursor_at` and `cursor_id` say up to
-- where it has come; `epoch` is the fencing token of the node whose lease runs until `lease_until` by this server's clock.
CREATE TABLE operation (
    id           uuid   NOT NULL PRIMARY KEY,
    key_id       uuid,
    cursor_id    uuid,
    cursor_at    bigint,
    matched      bigint NOT NULL,
    expected_max bigint NOT NULL,
    changed      bigint NOT NULL,
    skipped      bigint NOT NULL,
    errors       bigint NOT NULL,
    started_at   bigint NOT NULL,
    finished_at  bigint,
    epoch        bigint NOT NULL,
    lease_until  bigint NOT NULL,
    state        text   NOT NULL COLLATE "C",
    by_name      text   NOT NULL COLLATE "C",
    work         text   NOT NULL COLLATE "C",
    filter       text   NOT NULL COLLATE "C",
    error        text   COLLATE "C"
);

-- Few run at a time; all others only wait to be removed.
CREATE INDEX operation_running ON operation (id) WHERE state = 'running';
