-- Paused timers stand in a table of their own: nothing that looks for what is due ever meets them, however many they are. `at` is when the
-- next attempt is due.
CREATE TABLE IF NOT EXISTS paused (
    id          BINARY(16) NOT NULL PRIMARY KEY,
    at          BIGINT     NOT NULL,
    destination BIGINT     NOT NULL,
    paused_at   BIGINT     NOT NULL,
    attempt     INT        NOT NULL,
    last_error  TEXT,
    note        TEXT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Bulk changes that are carried out page by page. `work` and `filter` are texts of the program; `cursor_at` and `cursor_id` say up to
-- where it has come; `epoch` is the fencing token of the node whose lease runs until `lease_until` by this server's clock.
CREATE TABLE IF NOT EXISTS operation (
    id           BINARY(16)  NOT NULL PRIMARY KEY,
    key_id       BINARY(16),
    cursor_id    BINARY(16),
    cursor_at    BIGINT,
    matched      BIGINT      NOT NULL,
    expected_max BIGINT      NOT NULL,
    changed      BIGINT      NOT NULL,
    skipped      BIGINT      NOT NULL,
    errors       BIGINT      NOT NULL,
    started_at   BIGINT      NOT NULL,
    finished_at  BIGINT,
    epoch        BIGINT      NOT NULL,
    lease_until  BIGINT      NOT NULL,
    state        VARCHAR(16) NOT NULL,
    by_name      TEXT        NOT NULL,
    work         MEDIUMTEXT  NOT NULL,
    filter       MEDIUMTEXT  NOT NULL,
    error        TEXT,
    KEY operation_state (state, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- For people: everything under plain names, ids as text and times as timestamps in UTC.
CREATE OR REPLACE VIEW timers AS
SELECT
    LOWER(CONCAT_WS('-', HEX(SUBSTRING(f.id, 1, 4)), HEX(SUBSTRING(f.id, 5, 2)), HEX(SUBSTRING(f.id, 7, 2)),
        HEX(SUBSTRING(f.id, 9, 2)), HEX(SUBSTRING(f.id, 11, 6)))) AS id,
    CONVERT(f.namespace USING utf8mb4) AS namespace,
    CONVERT(f.`key` USING utf8mb4) AS `key`,
    TIMESTAMPADD(MICROSECOND, f.created_at, '1970-01-01') AS created_at,
    TIMESTAMPADD(MICROSECOND, COALESCE(o.finished_at, f.updated_at), '1970-01-01') AS updated_at,
    TIMESTAMPADD(MICROSECOND, f.execute_at, '1970-01-01') AS execute_at,
    f.callback_type,
    f.callback_config,
    CASE
        WHEN o.id IS NOT NULL THEN o.status
        WHEN p.id IS NOT NULL THEN 'paused'
        WHEN d.claim IS NOT NULL THEN 'executing'
        ELSE 'pending'
    END AS status,
    COALESCE(d.attempt, o.attempt, p.attempt) AS attempt,
    COALESCE(d.last_error, o.last_error, p.last_error) AS last_error,
    TIMESTAMPADD(MICROSECOND, d.at, '1970-01-01') AS next_attempt_at,
    TIMESTAMPADD(MICROSECOND, o.executed_at, '1970-01-01') AS executed_at,
    f.metadata,
    CONVERT(f.correlation_id USING utf8mb4) AS correlation_id,
    f.retry_policy,
    f.delivery,
    f.revision,
    f.options,
    TIMESTAMPADD(MICROSECOND, p.paused_at, '1970-01-01') AS paused_at,
    p.note AS pause_note
FROM definition f
LEFT JOIN due d ON d.shard = f.shard AND d.at = COALESCE(f.due_at, f.execute_at) AND d.id = f.id
LEFT JOIN outcome o ON o.id = f.id
LEFT JOIN paused p ON p.id = f.id;
