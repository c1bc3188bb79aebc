-- Replaces the definitions of many pending timers, each for a caller of its own, if they still have
-- the revision that the caller has read. Passes over rows that another session holds, so that no
-- caller waits for what another one waits for, and rows that were changed while the statement ran:
-- see cancel_free.sql. A timer with a new time starts its attempts over; another one waits for the
-- attempt that it waits for, or for its expiry.
-- Locks `due` before `definition`, as every change does.
-- $1 ids, $2 to $16 the definitions, among them $5 execute at, $17 revisions before, $18
-- destinations, $19 shards, $20 when they expire
WITH seen AS MATERIALIZED (
    SELECT
        w.*, f.ctid AS definition_place, w.execute_at = f.execute_at AS is_same_time, d.place, d.version, d.at,
        d.attempt, d.last_error
    FROM (
        SELECT
            unnest($1::uuid[]) AS id, unnest($2::text[]) AS namespace, unnest($3::text[]) AS key,
            unnest($4::bigint[]) AS asked, unnest($5::bigint[]) AS execute_at, unnest($6::text[]) AS callback_type,
            unnest($7::text[]) AS callback_config, unnest($8::text[]) AS metadata, unnest($9::text[]) AS correlation_id,
            unnest($10::text[]) AS retry_policy, unnest($11::text[]) AS delivery, unnest($12::bytea[]) AS fingerprint,
            unnest($13::bigint[]) AS updated_at, unnest($14::text[]) AS options, unnest($15::text[]) AS group_name,
            unnest($16::bigint[]) AS revision, unnest($17::bigint[]) AS revision_before,
            unnest($18::bigint[]) AS destination, unnest($19::smallint[]) AS shard, unnest($20::bigint[]) AS expires_at
    ) w
    JOIN definition f ON f.id = ANY (ARRAY[w.id])
    -- OFFSET 0 as in read.sql.
    CROSS JOIN LATERAL (
        SELECT d.ctid AS place, d.xmin AS version, d.at, d.attempt, d.last_error
        FROM due d
        WHERE d.shard = w.shard AND d.at = coalesce(f.due_at, f.execute_at) AND d.id = w.id AND d.claim IS NULL
        OFFSET 0
    ) d
    WHERE f.revision = w.revision_before
), held AS MATERIALIZED (
    SELECT
        s.*,
        CASE
            WHEN NOT s.is_same_time THEN s.execute_at
            WHEN s.at > s.execute_at THEN least(s.at, s.expires_at)
            ELSE s.at
        END AS next_at
    FROM seen s
    JOIN due d ON d.ctid = s.place AND d.xmin = s.version
    FOR UPDATE OF d SKIP LOCKED
), changed AS (
    UPDATE definition f
    SET namespace = h.namespace, key = h.key, asked = h.asked, execute_at = h.execute_at,
        due_at = CASE WHEN h.is_same_time THEN h.next_at END, callback_type = h.callback_type,
        callback_config = h.callback_config, metadata = h.metadata, correlation_id = h.correlation_id,
        retry_policy = h.retry_policy, delivery = h.delivery, fingerprint = h.fingerprint, updated_at = h.updated_at,
        revision = h.revision, options = h.options, group_name = h.group_name, recorded = h.revision
    FROM held h
    WHERE f.ctid = h.definition_place AND f.revision = h.revision_before
    RETURNING
        h.place, h.id, h.next_at, h.destination, h.revision, f.created_at,
        CASE WHEN h.is_same_time THEN h.attempt ELSE 0 END AS attempt,
        CASE WHEN h.is_same_time THEN h.last_error END AS last_error
), written AS (
    -- Here, and not by the trigger, whose function is called for each row. The lock on `due` has given the
    -- transaction its number.
    INSERT INTO journal (at, kind, id, seq)
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 2, id, revision FROM changed
)
UPDATE due d
SET at = c.next_at, attempt = c.attempt, last_error = c.last_error, destination = c.destination
FROM changed c
WHERE d.ctid = c.place
RETURNING c.id, c.created_at, c.attempt, c.last_error
