-- Records that claimed timers have ended: each row leaves `due` and appears in `outcome` in one
-- commit. Their attempts are kept, and those that are too many removed. There cannot be an outcome
-- already. This is for a batch that met one, in a damaged database: it must not hold up the whole
-- batch.
-- $1 shards, $2 due times, $3 ids, $4 tokens, $5 places in the batch, $6 statuses, $7 errors, $8
-- when they ended, $9 epochs, $10 how many of the counted attempts were not started; $11 to $16
-- attempts, $17 how many of them are kept, $18 the answers of their receivers
WITH held AS MATERIALIZED (
    -- The current shard leases.
    SELECT shard, epoch FROM shard WHERE shard = ANY ($1::smallint[])
), settled AS (
    DELETE FROM due d
    USING (
        SELECT
            unnest($1::smallint[]) AS shard, unnest($2::bigint[]) AS at, unnest($3::uuid[]) AS id,
            unnest($4::bigint[]) AS token, unnest($5::bigint[]) AS place, unnest($6::text[]) AS status,
            unnest($7::text[]) AS error, unnest($8::bigint[]) AS finished_at, unnest($9::bigint[]) AS epoch,
            unnest($10::integer[]) AS unsent,
            unnest($11::integer[]) AS a_number, unnest($12::bigint[]) AS a_started_at, unnest($13::bigint[]) AS a_took,
            unnest($14::text[]) AS a_outcome, unnest($15::integer[]) AS a_status, unnest($16::text[]) AS a_detail,
            unnest($18::text[]) AS a_answer
    ) e
    WHERE d.shard = ANY (ARRAY[e.shard]) AND d.at = e.at AND d.id = e.id AND d.claim = e.token
        AND (d.epoch = e.epoch OR ((e.shard, e.epoch) IN (SELECT shard, epoch FROM held)) IS TRUE)
    RETURNING
        d.id, d.attempt - e.unsent AS attempt, e.place, e.status, e.error, e.finished_at,
        e.a_number, e.a_started_at, e.a_took, e.a_outcome, e.a_status, e.a_detail, e.a_answer
), kept AS (
    INSERT INTO outcome (id, status, attempt, last_error, executed_at, finished_at)
    SELECT id, status, attempt, error, finished_at, finished_at FROM settled
    ON CONFLICT (id) DO UPDATE SET
        status = excluded.status, attempt = excluded.attempt, last_error = excluded.last_error,
        executed_at = excluded.executed_at, finished_at = excluded.finished_at
), remembered AS (
    -- The session that settles a claim holds its row in `due`, and sees what was remembered before
    -- the claim was made: no other session counts on for this timer at the same time.
    INSERT INTO attempt (id, seq, number, started_at, took, outcome, status, detail, answer)
    SELECT
        s.id, coalesce((SELECT max(a.seq) FROM attempt a WHERE a.id = s.id), 0) + 1,
        s.a_number, s.a_started_at, s.a_took, s.a_outcome, s.a_status, s.a_detail, s.a_answer
    FROM settled s
    WHERE s.a_number IS NOT NULL
    RETURNING id, seq
), forgotten AS (
    DELETE FROM attempt a USING remembered r WHERE a.id = ANY (ARRAY[r.id]) AND a.seq <= r.seq - $17::bigint
)
SELECT place FROM settled
