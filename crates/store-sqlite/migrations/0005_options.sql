-- Fields of a timer that no query asks for are kept together in one text, with a version: a further one needs no migration.
-- NULL where all of them have their defaults.
ALTER TABLE definition ADD COLUMN options TEXT;

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
    d.revision,
    d.options
FROM definition d
LEFT JOIN due u ON u.shard = 0 AND u.minute = d.due_minute AND u.id = d.id
LEFT JOIN outcome o ON o.minute = d.execute_minute AND o.id = d.id;
