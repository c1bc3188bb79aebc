-- Fields of a timer that no query asks for are kept together in one text, with a version: a further one needs no migration.
-- NULL where all of them have their defaults. A program of the version before goes on beside this: it does not name the column.
ALTER TABLE definition ADD COLUMN options text COLLATE "C";

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
    CASE WHEN o.id IS NOT NULL THEN o.status WHEN d.claim IS NOT NULL THEN 'executing' ELSE 'pending' END AS status,
    coalesce(d.attempt, o.attempt) AS attempt,
    coalesce(d.last_error, o.last_error) AS last_error,
    to_timestamp(d.at / 1000000.0) AS next_attempt_at,
    to_timestamp(o.executed_at / 1000000.0) AS executed_at,
    f.metadata,
    f.correlation_id,
    f.retry_policy,
    f.delivery,
    f.revision,
    f.options
FROM definition f
CROSS JOIN timer_setup s
LEFT JOIN due d
    ON d.shard = ((get_byte(uuid_send(f.id), 14) * 256 + get_byte(uuid_send(f.id), 15)) % s.shards)::smallint
    AND d.at = coalesce(f.due_at, f.execute_at)
    AND d.id = f.id
LEFT JOIN outcome o ON o.id = f.id;
