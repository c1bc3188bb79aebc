-- Notifies the other nodes that timers are due soon. Notifications are for a whole database: the
-- number of a table of ours tells apart installations under different schemas.
-- $1 payloads
SELECT pg_notify('timer_due_' || to_regclass('shard')::oid, payload)
FROM unnest($1::text[]) AS payload
