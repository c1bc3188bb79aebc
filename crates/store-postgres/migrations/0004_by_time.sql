-- What is due is kept in the order in which it is due, so that a page of it is read and nothing else. A program of the version before
-- cannot go on beside this one: it waits here, and then finds its columns gone.

LOCK TABLE definition, due IN ACCESS EXCLUSIVE MODE;

-- Where the row in `due` is, if not at `execute_at`: after a failed attempt.
ALTER TABLE definition ADD COLUMN due_at bigint;

UPDATE definition f SET due_at = d.at FROM due d WHERE d.id = f.id AND d.at <> f.execute_at;

-- It names these columns, and is made again below.
DROP VIEW timers;

ALTER TABLE definition DROP COLUMN due_minute;
ALTER TABLE due DROP CONSTRAINT due_pkey;
ALTER TABLE due DROP COLUMN minute;
-- Still nothing that a claim changes.
ALTER TABLE due ADD PRIMARY KEY (shard, at, id);

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
    AND d.at = coalesce(f.due_at, f.execute_at)
    AND d.id = f.id
LEFT JOIN outcome o ON o.id = f.id;
